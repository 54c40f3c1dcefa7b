import type { LockDirectory } from '../../lock-directory.js';
import type { QuorumMember } from '../../quorum/quorum-member.js';
import type { Runtime, Timer } from '../../runtime.js';
import { TopologyFactory } from '../links/topology.js';
import { RedisBackend } from '../redis-backend.js';
import { InProcessTopology } from './in-process-topology.js';
import { type MemoryStore, processStore } from './memory-store.js';

/** @publicApi */
export interface MemoryBackendOptions {
  /** Usually `nodeRuntime`. Tests can control time with a runtime of their own. */
  readonly runtime: Runtime;
  /** Default: a store that all backends of this process share. */
  readonly store?: MemoryStore;
}

/** Milliseconds. A request is answered in the same turn of the event loop, so nobody waits for this. */
const COMMAND_TIMEOUT = 60_000;

/** An interface of its own, because users need not see the types of the Redis backend. @publicApi */
export interface MemoryBackend extends QuorumMember {
  readonly directory: LockDirectory;
}

/**
 * Locks inside one process, for tests, demos and simulations. They are kept by the same scripts as in Redis. Several
 * backends on one store behave like several processes on one Redis.
 *
 * It starts no timers, and does not keep the process alive.
 *
 * ```ts
 * const locks = createLockService({ backend: new MemoryBackend({ runtime: nodeRuntime, store: new MemoryStore() }) });
 * ```
 *
 * @throws BackendError from every method after `close()`
 * @publicApi
 */
export const MemoryBackend: new (options: MemoryBackendOptions) => MemoryBackend =
  class MemoryBackend extends RedisBackend {
    constructor({ runtime, store = processStore() }: MemoryBackendOptions) {
      super({
        connection: new TopologyFactory(() => new InProcessTopology(store.server(runtime), runtime)),
        runtime: withoutTimers(runtime),
        commandTimeout: COMMAND_TIMEOUT,
        shardedPubSub: 'off',
        minReplicas: 0,
        onError: () => {},
      });
    }

    /** A server in this process is never away. */
    override get health(): undefined {
      return undefined;
    }

    override keepAlive(): void {}
  };

/** All timers of a {@link RedisBackend} wait for answers that may not come, or check connections. */
function withoutTimers(runtime: Runtime): Runtime {
  return Object.create(runtime, { timer: { value: (): Timer => ({ cancel() {} }) } });
}
