import type { HeldType, Wake } from '../../../lib/backends/lock-backend.js';
import { until } from '../../support/until.js';
import type { Client } from './fixture.js';

/** A subscription that counts what it receives. */
export class Listener {
  /** Messages only, without resyncs. */
  readonly heard: Extract<Wake, { kind: 'message' }>[] = [];
  readonly ready: Promise<void>;
  readonly close: () => void;

  constructor(client: Client, key: string, type: HeldType) {
    const subscription = client.backend.subscribe(key, type, client.id, (wake) => {
      if (wake.kind === 'message') this.heard.push(wake);
    });
    this.ready = subscription.ready;
    this.close = () => subscription.close();
  }

  /** Settles with the `count`-th message. */
  async hears(count = 1): Promise<void> {
    await until(() => this.heard.length >= count);
  }
}
