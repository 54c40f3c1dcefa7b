import type { LockType } from '../../backends/lock-backend.js';
import type { HeldLock, LockKeeper } from '../lease/held-lock.js';
import type { Moment } from '../lease/lease-clock.js';
import type { AcquisitionTerms } from '../lock-options.js';
import type { Waiter } from '../waiting/waiter.js';

/** Who keeps queues for as long as something goes on in them. */
export interface QueueKeeper {
  /** Nothing goes on in it any more. */
  retire(queue: AcquisitionQueue): void;
}

/** Where the callers of one process wait for one lock. */
export interface AcquisitionQueue extends LockKeeper {
  readonly type: LockType;

  /** What this process holds of the lock. */
  readonly holders: Iterable<HeldLock>;

  /** Callers that wait. */
  readonly length: number;

  /** Serves this waiter, or refuses it, sooner or later. */
  enqueue(waiter: Waiter): void;

  /** These owners were removed by force: waiters that may have been one of them go on as others. */
  removed(owners: readonly string[]): void;

  /** Sends one waiter away. */
  dismiss(waiter: Waiter, error: Error): void;

  /** Shutdown: sends away those who wait, and to whom `whom` applies. */
  rejectWaiters(whom: (waiter: Waiter) => boolean): void;

  /** Takes the whole queue for one attempt from outside, if nothing goes on in it. */
  claim(): boolean;

  /** Ends a {@link claim} that acquired nothing. */
  unclaim(): void;

  /**
   * Ends a {@link claim} that acquired the lock.
   *
   * @param keeper who is told in place of this queue what becomes of the lock
   */
  fulfil(owner: string, terms: AcquisitionTerms, sent: Moment, token: number, keeper?: LockKeeper): HeldLock;
}
