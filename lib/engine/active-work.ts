import { type Linked, LinkedQueue } from './collections/linked-queue.js';
import type { HeldLock, LockShare } from './hold/held-lock.js';
import { QueueTable } from './queue-table.js';
import type { Lease } from './terms/lease.js';
import type { AwaitingQueue } from './wait/awaited.js';
import type { WaitingQueues } from './wait/outage-limit.js';

/** How much work a service has at one moment. All numbers are 0 when it is idle. */
export interface Activity {
  /** Locks that the service holds, or that its callers wait for. */
  readonly queues: number;
  /** Leases that have not been released yet. */
  readonly leases: number;
  /** Callers that are still acquiring several locks. */
  readonly severalLocks: number;
  /** Semaphores and latches that callers wait for. */
  readonly permitQueues: number;
  /** Changes of semaphores and latches that are under way. */
  readonly changes: number;
  /** Permits that the service renews. */
  readonly renewedPermits: number;
}

/** A lease that has not been released yet. */
interface OpenLease extends Lease, LockShare, Linked<OpenLease> {
  readonly locks: readonly HeldLock[];
  /** See `LockLease.hasBody`. */
  readonly hasBody: boolean;
  /** See `LockLease.abort`. */
  abort(reason: Error): void;
}

/** An unfinished acquisition of several locks. */
interface SeveralLocks extends AwaitingQueue {}

/** A candidate for leadership. */
interface ElectionCandidate {
  readonly name: string;
  readonly method: string;
  readonly waitsForCaller: boolean;
  stop(): Promise<void>;
}

/** The callers of a semaphore or latch. */
interface PermitCallers {
  readonly callers: AwaitingQueue;
  readonly length: number;
  recheck(): void;
  close(): Promise<void>;
}

/**
 * The unfinished work of one service: who holds something, and who waits. Shutdown waits until it ends, and an outage
 * is noticed and limited for all who wait.
 */
export class ActiveWork implements WaitingQueues {
  readonly queues = new QueueTable();
  /** Leases that have not been released yet. */
  readonly leases = new LinkedQueue<OpenLease>();
  /** Unfinished acquisitions of several locks. A caller has an entry for each lock type. */
  readonly several = new Set<SeveralLocks>();
  /** Candidates for leadership. They run until they are stopped. */
  readonly candidates = new Set<ElectionCandidate>();
  /** By kind and key: see Synchronizers. */
  readonly permitQueues = new Map<string, PermitCallers>();
  /** The number of permits that the service renews. Set by Synchronizers. */
  countPermits: () => number = () => 0;
  private bodies = 0;
  /** How often {@link underWay} was called. Bodies know it from their beginning. */
  private period = 0;
  /** The running bodies that began before the last call of {@link underWay}. */
  private earlierBodies = 0;
  /** The number of unanswered releases whose callers have continued. */
  private releases = 0;
  /** The number of waiters that have left, and whose removal from the backend is unanswered. */
  private removals = 0;
  private readonly listeners = new Set<() => void>();

  /** Whether no lease is held, no body runs, and no release in the background is unanswered. */
  get isIdle(): boolean {
    return this.leases.length === 0 && this.bodies === 0 && this.releases === 0;
  }

  /** Like {@link isIdle}, apart from these leases and their bodies. */
  isIdleBut(own: ReadonlySet<unknown>): boolean {
    return this.bodies <= own.size && [...this.leases].every((lease) => own.has(lease));
  }

  /** Whether no acquisition, and no removal of a waiter, is under way. */
  get isAnswered(): boolean {
    return this.hasNoQueues && this.removals === 0;
  }

  /** Whether no acquisition is under way. */
  get hasNoQueues(): boolean {
    return this.queues.size === 0 && this.several.size === 0;
  }

  /** @returns what {@link bodyEnded} needs to know */
  bodyStarted(): number {
    this.bodies++;
    return this.period;
  }

  bodyEnded(period: number): void {
    this.bodies--;
    if (period < this.period) this.earlierBodies--;
  }

  /** The bodies and leases of this moment, apart from these leases and their bodies: whether some of them remain. */
  underWay(own: ReadonlySet<unknown>): () => boolean {
    this.period++;
    this.earlierBodies = this.bodies;
    const leases = new Set([...this.leases].filter((lease) => !own.has(lease)));
    return () => this.earlierBodies > own.size || [...this.leases].some((lease) => leases.has(lease));
  }

  releaseStarted(): void {
    this.releases++;
  }

  releaseEnded(): void {
    this.releases--;
    this.changed();
  }

  removalStarted(): void {
    this.removals++;
  }

  removalEnded(): void {
    this.removals--;
    this.changed();
  }

  candidateEnded(candidate: ElectionCandidate): void {
    this.candidates.delete(candidate);
    this.changed();
  }

  severalEnded(locks: SeveralLocks): void {
    this.several.delete(locks);
    this.changed();
  }

  // ── All waiting callers, for OutageLimit, PingWhileWaiting and Shutdown ─────────────────────────────────────────────────────

  get isEmpty(): boolean {
    return this.hasNoQueues && this.permitQueues.size === 0;
  }

  forEach(visit: (queue: AwaitingQueue) => void): void {
    // Callers of several names come first, because each of them also waits in the queue of one name. That wait ends
    // together with theirs.
    for (const caller of [...this.several]) visit(caller);
    for (const { callers: line } of this.queues.values()) if (!line.isEmpty) visit(line);
    for (const { callers: line } of [...this.permitQueues.values()]) visit(line);
  }

  // ── Ends ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Called when some work has ended and, during shutdown, when callers have to wait. */
  changed(): void {
    for (const listener of this.listeners) listener();
  }

  /** Calls `listener` at each of these changes, until the returned function is called. */
  watch(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }
}
