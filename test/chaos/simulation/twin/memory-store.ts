import { ExpiringMap } from '../../../../lib/backends/expiring-map.js';
import { WaitStore } from '../../../../lib/backends/in-process-waits.js';
import type { ClientRecord } from '../../../../lib/backends/lock-directory.js';
import type { Removal } from '../../../../lib/backends/lock-requests.js';
import { printsAs } from '../../../../lib/backends/prints-as.js';
import type { Runtime } from '../../../../lib/backends/runtime.js';
import { Channels } from './channels.js';
import { FencingClocks } from './fencing-clock.js';
import { FlightStore } from './flight-store.js';
import type { LockRecord } from './lock-record.js';
import { SynchronizerStore } from './synchronizer-store.js';
import type { WaitingOwners } from './waiting-owners.js';

/** The clock of a store, as `TIME` is the clock of a Redis server. */
export type StoreClock = Pick<Runtime, 'monotonic' | 'wall'>;

/** The newest call of a line. */
interface NewestPlace {
  readonly owner: string;
  readonly superseded: number;
  readonly order: number;
  /** The highest owner number of each client. */
  readonly numbers: Map<string, number>;
  readonly until: number;
}

/** A client's record, and when it was written. */
interface WrittenRecord {
  readonly record: ClientRecord;
  readonly at: number;
  readonly until: number;
}

/**
 * Where memory backends keep their locks. Backends that share a store contend with each other, like processes that
 * share a Redis; `new MemoryStore()` is a separate store, whose locks nobody else sees.
 *
 * ```ts
 * const store = new MemoryStore();
 * const backends = [1, 2].map(() => new MemoryBackend({ runtime: nodeRuntime, store }));
 * const [ann, bob] = backends.map((backend) => createLockService({ backend }));
 * ```
 *
 * @publicApi
 */
export class MemoryStore {
  /** @internal */
  readonly locks = new ExpiringMap<LockRecord>((record, now) => record.isEmpty(now));
  /** @internal */
  readonly fairWaiters = new ExpiringMap<WaitingOwners>((waiters, now) => waiters.isEmpty(now));
  /** @internal The lines of locks. */
  readonly lines = new ExpiringMap<WaitingOwners>((waiters, now) => waiters.isEmpty(now));
  /** @internal The newest place of each line whose callers supersede each other. */
  readonly newest = new ExpiringMap<NewestPlace>(({ until }, now) => until <= now);
  /** @internal */
  readonly clients = new ExpiringMap<WrittenRecord>(({ until }, now) => until <= now);
  /** @internal */
  readonly fencing = new FencingClocks((key) => this.locks.has(key));
  /** @internal Results of single flights. */
  readonly flights = new FlightStore((key, now) => this.locks.get(key, now) !== undefined);
  /** @internal Semaphores and latches. */
  readonly synchronizers = new SynchronizerStore();
  /** @internal The waits of callers that hold locks. */
  readonly waits = new WaitStore();
  /** @internal */
  readonly channels = new Channels();
  /** @internal One for each client, for forced releases. */
  readonly clientChannels = new Channels<Removal>();

  /**
   * @param clock the clock used to measure leases. Default: the runtime of each backend. This is correct only if all of
   * them use the same clock.
   */
  constructor(readonly clock?: StoreClock) {}
}

const PROCESS_STORE = Symbol.for('nestjs-redis-lock.twin-store');

/**
 * The store of this process. Copies of this library that were loaded by `import` and by `require` share it.
 */
export function processStore(): MemoryStore {
  const global = globalThis as { [PROCESS_STORE]?: MemoryStore };
  global[PROCESS_STORE] ??= new MemoryStore();
  return global[PROCESS_STORE];
}

printsAs(MemoryStore, () => ({}));
