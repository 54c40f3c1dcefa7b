import type { HeldType } from '../../backends/lock-backend.js';
import type { FlightQueue } from '../flights/flight-queue.js';
import type { FairQueue } from './fair-queue.js';
import type { LockQueue } from './lock-queue.js';

/** One lock in one process, of any type that can be asked for. */
export type LockQueues = LockQueue | FairQueue;
/** One lock, or single flight, in one process. */
export type LocalQueue = LockQueues | FlightQueue;

/** How many removals it takes until a map is replaced by a copy. */
const REMOVALS = 1_024;

/** The queues of one engine, by the types and names of their locks. Readers and writers share a queue. */
export class QueueTable {
  private readonly reentrant = new QueueMap();
  private readonly readWrite = new QueueMap();
  private readonly fairLocks = new QueueMap<FairQueue>();
  private readonly fenced = new QueueMap();
  private readonly flights = new QueueMap<FlightQueue>();

  get size(): number {
    return this.maps.reduce((sum, { queues }) => sum + queues.size, 0);
  }

  /** The queue of a lock that is not a single flight. */
  get(type: HeldType, name: string): LockQueues | undefined {
    return this.mapOf(type).queues.get(name);
  }

  fair(name: string): FairQueue | undefined {
    return this.fairLocks.queues.get(name);
  }

  flight(name: string): FlightQueue | undefined {
    return this.flights.queues.get(name);
  }

  add(queue: LocalQueue): void {
    if (queue.type === 'flight') this.flights.queues.set(queue.name, queue as FlightQueue);
    else this.mapOf(queue.type).queues.set(queue.name, queue as LockQueues);
  }

  remove(queue: LocalQueue): void {
    if (queue.type === 'flight') this.flights.remove(queue as FlightQueue);
    else this.mapOf(queue.type).remove(queue as LockQueues);
  }

  /** The queues of all types under this name. */
  named(name: string): LocalQueue[] {
    return this.maps.flatMap(({ queues }) => queues.get(name) ?? []);
  }

  /** A copy of the queues that exist now, so that none is skipped when others come and go during an iteration. */
  values(): LocalQueue[] {
    return this.maps.flatMap(({ queues }) => [...queues.values()]);
  }

  /**
   * Calls `visit` with each queue, without copying them: a service may hold a hundred thousand locks. Queues must not
   * come or go meanwhile.
   */
  forEach(visit: (queue: LocalQueue) => void): void {
    for (const { queues } of this.maps) for (const queue of queues.values()) visit(queue);
  }

  private mapOf(type: HeldType): QueueMap {
    if (type === 'reentrant') return this.reentrant;
    if (type === 'fair') return this.fairLocks as QueueMap;
    return type === 'fenced' ? this.fenced : this.readWrite;
  }

  private get maps(): readonly QueueMap<LocalQueue>[] {
    return [this.reentrant, this.readWrite, this.fairLocks, this.fenced, this.flights] as QueueMap<LocalQueue>[];
  }
}

/**
 * Replaced by a copy now and then, because V8's Map keeps its former tables: see
 * docs/decisions/classes-on-the-hot-path.md.
 */
class QueueMap<Queue extends LocalQueue = LockQueues> {
  queues = new Map<string, Queue>();
  private removals = 0;

  /** Does nothing if another queue of the same lock has replaced this one. */
  remove(queue: Queue): void {
    if (this.queues.get(queue.name) !== queue) return;
    this.queues.delete(queue.name);
    if (++this.removals < REMOVALS) return;
    this.removals = 0;
    this.queues = new Map(this.queues);
  }
}
