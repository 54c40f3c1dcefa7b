import { clientOf } from '../../../../lib/backends/owner-ids.js';
import { lineChannel } from '../../../../lib/backends/redis/lock-keys.js';
import type { Network } from './network-conditions.js';
import type { SimulatedServer } from './simulated-server.js';
import type { VirtualTime } from './virtual-time.js';

const LINE_CHANNELS = lineChannel('', '').replace(/:.*/, ':');

/**
 * Somebody who may publish on the channels of lines: a grant that was published before, and grants that no server has
 * made.
 */
export class Stranger {
  constructor(
    private readonly time: VirtualTime,
    private readonly network: Network,
    private readonly server: SimulatedServer,
  ) {
    server.onPublish = (channel, text) => this.hears(channel, text);
  }

  /** This owner waits in line. */
  sees(key: string, owner: string): void {
    if (this.network.isHeardByStranger())
      this.publishWithin(100, lineChannel(key, clientOf(owner)), `${owner} granted forged 1 0 0 30000`);
  }

  private hears(channel: string, text: string): void {
    const [owner, state, nonce] = text.split(' ');
    if (!channel.startsWith(LINE_CHANNELS) || state !== 'granted' || nonce === 'forged') return;
    if (this.network.isHeardByStranger()) this.publishWithin(2_500, channel, text);
    if (this.network.isHeardByStranger())
      this.server.redis.publish('channel', channel, `${owner} granted forged 1 0 0 30000`);
  }

  private publishWithin(delay: number, channel: string, text: string): void {
    this.time.after(this.network.within(delay), () => {
      if (!this.server.isDown) this.server.redis.publish('channel', channel, text);
    });
  }
}
