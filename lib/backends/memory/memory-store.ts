import type { Removal } from '../lock-backend.js';
import type { Runtime } from '../runtime.js';
import { Channels } from './channels.js';
import { FencingClocks } from './fencing-clock.js';
import type { Hold } from './hold.js';
import { LapsingMap } from './lapsing-map.js';
import { Places } from './places.js';
import { SynchronizerStore } from './synchronizer-store.js';

/** The clock of a store, as `TIME` is the clock of a Redis server. */
export type StoreClock = Pick<Runtime, 'monotonic' | 'wall'>;

/** How many were woken in vain since this holder has the lock. */
interface Line {
  readonly holder: string;
  readonly count: number;
  readonly until: number;
}

/**
 * Where memory backends keep their locks. Those that share a store contend with each other, as processes do that share a
 * Redis; `new MemoryStore()` gives locks that nobody else sees.
 *
 * @publicApi
 */
export class MemoryStore {
  /** @internal */
  readonly holds = new LapsingMap<Hold>((hold, now) => hold.isOver(now));
  /** @internal Waiters of fair locks. */
  readonly queues = new LapsingMap<Places>((places, now) => places.isOver(now));
  /** @internal Announced writers. */
  readonly writers = new LapsingMap<Places>((places, now) => places.isOver(now));
  /** @internal Those who were woken in vain. */
  readonly lines = new LapsingMap<Line>(({ until }, now) => until <= now);
  /** @internal */
  readonly fencing = new FencingClocks((key) => this.holds.has(key));
  /** @internal Semaphores and latches. */
  readonly synchronizers = new SynchronizerStore();
  /** @internal */
  readonly channels = new Channels();
  /** @internal Each client's own, for forced releases. */
  readonly clients = new Channels<Removal>();

  /** @param clock what leases are measured by. Default: each backend's own runtime, which is right while all run by the same clock. */
  constructor(readonly clock?: StoreClock) {}
}

const PROCESS_STORE = Symbol.for('nestjs-redis-lock.memory-store');

/** The store that all of this process share, also those that came by another copy of this library (`import` and `require`). */
export function processStore(): MemoryStore {
  const global = globalThis as { [PROCESS_STORE]?: MemoryStore };
  global[PROCESS_STORE] ??= new MemoryStore();
  return global[PROCESS_STORE];
}
