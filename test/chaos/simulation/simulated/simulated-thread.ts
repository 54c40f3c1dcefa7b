import { TopologyFactory } from '../../../../lib/backends/redis/links/topology.js';
import { RedisBackend } from '../../../../lib/backends/redis/redis-backend.js';
import { ThreadStandby } from '../../../../lib/standby/loop-side.js';
import type { ToThread } from '../../../../lib/standby/messages.js';
import type { Member as Service } from '../../../../lib/standby/standby-thread.js';
import { type KeeperBackend, ServiceKeeper } from '../../../../lib/standby/thread-side.js';
import type { Cable } from './cable.js';
import type { ClientLibrary } from './simulated-link.js';
import type { SimulatedProcess } from './simulated-process.js';
import type { SimulatedServer } from './simulated-server.js';
import { SimulatedTopology } from './simulated-topology.js';

export interface ThreadSettings {
  readonly library: ClientLibrary;
  readonly watchdogTimeout: number;
  readonly keepWhileBlocked: number;
}

/** Times in shared memory are whole milliseconds. */
const ROUNDING = 2;

/**
 * The thread of `keepWhileBlocked`, with the real code of both sides and their shared memory. It is a process of its
 * own with the clocks of the process that it belongs to, so that each of them can be stopped alone.
 */
export class SimulatedThread {
  readonly standby: ThreadStandby;
  readonly problem = undefined;
  private readonly backend: RedisBackend;
  private keeper: ServiceKeeper | undefined;

  /**
   * @param onRenewed called when it has renewed the lock of this key and owner
   * @param trouble called when it renews although the event loop has been blocked for longer than it may
   */
  constructor(
    private readonly process: SimulatedProcess,
    private readonly loop: SimulatedProcess,
    cable: Cable,
    servers: readonly SimulatedServer[],
    private readonly settings: ThreadSettings,
    private readonly onRenewed: (key: string, owner: string) => void,
    private readonly trouble: (what: string) => void,
  ) {
    const { commandTimeout } = cable;
    const { library, watchdogTimeout, keepWhileBlocked } = settings;
    this.backend = new RedisBackend({
      connection: new TopologyFactory(() => new SimulatedTopology(cable, servers, library)),
      runtime: process.unobserved,
      commandTimeout,
      shardedPubSub: 'off',
      minReplicas: 0,
      onError: () => {},
      standby: true,
    });
    this.standby = new ThreadStandby({
      backend: this.backend,
      runtime: loop.unobserved,
      clientId: loop.clientId,
      watchdogTimeout,
      commandTimeout,
      keepWhileBlocked,
      servers: () => ({ connections: [], isQuorum: false }),
      joinThread: (service) => this.join(service),
    });
  }

  async opened(): Promise<void> {}

  tell(message: ToThread): void {
    if (message.type === 'chunk') this.keeper?.addChunk(message.chunk);
  }

  leave(): void {
    this.keeper?.close();
  }

  private join(service: Service): this {
    this.keeper = new ServiceKeeper(
      service,
      () => {},
      this.process.unobserved,
      () => this.observed(),
    );
    return this;
  }

  private observed(): KeeperBackend {
    const { backend, process, loop, onRenewed } = this;
    const longest = this.settings.keepWhileBlocked + ROUNDING;
    return {
      synchronizers: backend.synchronizers,
      connectionError: undefined,
      ping: () => backend.ping(),
      close: () => backend.close(),
      renew: async (request) => {
        const { blockedFor } = loop;
        if (blockedFor > longest) this.trouble(`the thread renewed ${request.key} after a block of ${blockedFor} ms`);
        const isHeld = await backend.renew(request);
        if (isHeld) process.receive(0, () => onRenewed(request.key, request.owner));
        return isHeld;
      },
    };
  }
}
