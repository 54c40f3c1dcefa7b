import { LinkedQueue } from './collections/linked-queue.js';
import type { LockLease } from './lease/lock-lease.js';
import { QueueTable } from './queue/queue-table.js';
import type { LocksOfOneService } from './several/locks-of-one-service.js';

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

/** The unfinished work of one service. Shutdown waits until it ends. */
export class ActiveWork {
  readonly queues = new QueueTable();
  /** Leases that have not been released yet. */
  readonly leases = new LinkedQueue<LockLease>();
  /** Unfinished acquisitions of several locks. A caller has an entry for each lock type. */
  readonly several = new Set<LocksOfOneService>();
  /** Candidates for leadership. They run until they are stopped. */
  readonly candidates = new Set<{ stop(): Promise<void> }>();
  private bodies = 0;
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

  bodyStarted(): void {
    this.bodies++;
  }

  bodyEnded(): void {
    this.bodies--;
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

  severalEnded(locks: LocksOfOneService): void {
    this.several.delete(locks);
    this.changed();
  }

  /** Called when some work has ended. */
  changed(): void {
    for (const listener of this.listeners) listener();
  }

  /** Calls `listener` whenever some work ends, until the returned function is called. */
  watch(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }
}
