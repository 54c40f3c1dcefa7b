import type { HeldType } from '../backends/lock-backend.js';
import type { LinkedQueue } from './collections/linked-queue.js';
import type { HeldLock, LockWaiter } from './hold/held-lock.js';
import type { AwaitingQueue } from './wait/awaited.js';

/** The callers of a re-entrant lock of whom only the newest waits have a queue of their own. */
export type QueueKind = HeldType | 'newest';

/** One lock, or single flight, in one process. */
export interface LocalQueue {
  readonly kind: QueueKind;
  readonly name: string;
  readonly key: string;
  readonly holders: readonly HeldLock[];
  readonly waiting: LinkedQueue<LockWaiter>;
  readonly callers: AwaitingQueue & { readonly isEmpty: boolean };
  /** Handles a forced release of these owners by this process. Holders hear of it otherwise. */
  removed?(owners: readonly string[]): void;
  /** Ends the queue if it has nothing left to do. While the service runs, it may be kept a little for its next caller. */
  endIfIdle(): void;
}

/** How many removals it takes until a map is replaced by a copy. */
const REMOVALS = 1_024;

/** The queues of one engine, by the kinds and names of their locks. Readers and writers share a queue. */
export class QueueTable {
  private readonly reentrant = new QueueMap();
  private readonly readWrite = new QueueMap();
  private readonly fair = new QueueMap();
  private readonly fenced = new QueueMap();
  private readonly flights = new QueueMap();
  private readonly permits = new QueueMap();
  private readonly newest = new QueueMap();
  private readonly maps = [
    this.reentrant,
    this.readWrite,
    this.fair,
    this.fenced,
    this.flights,
    this.permits,
    this.newest,
  ];

  get size(): number {
    return this.maps.reduce((sum, { queues }) => sum + queues.size, 0);
  }

  get(kind: QueueKind, name: string): LocalQueue | undefined {
    return this.mapOf(kind).queues.get(name);
  }

  add(queue: LocalQueue): void {
    this.mapOf(queue.kind).queues.set(queue.name, queue);
  }

  remove(queue: LocalQueue): void {
    this.mapOf(queue.kind).remove(queue);
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

  private mapOf(kind: QueueKind): QueueMap {
    if (kind === 'reentrant') return this.reentrant;
    if (kind === 'fair') return this.fair;
    if (kind === 'fenced') return this.fenced;
    if (kind === 'permits') return this.permits;
    if (kind === 'newest') return this.newest;
    if (kind === 'flight') return this.flights;
    kind satisfies 'read' | 'write';
    return this.readWrite;
  }
}

/**
 * Replaced by a copy now and then, because V8's Map keeps its former tables: see
 * docs/internals/decisions/classes-on-the-hot-path.md.
 */
class QueueMap {
  queues = new Map<string, LocalQueue>();
  private removals = 0;

  /** Does nothing if another queue of the same lock has replaced this one. */
  remove(queue: LocalQueue): void {
    if (this.queues.get(queue.name) !== queue) return;
    this.queues.delete(queue.name);
    if (++this.removals < REMOVALS) return;
    this.removals = 0;
    this.queues = new Map(this.queues);
  }
}
