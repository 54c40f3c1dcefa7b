import { BackOff } from '../backends/back-off.js';
import type { LockLease } from '../engine/lease/lock-lease.js';
import type { ClaimTerms } from './lock-handle.js';
import { ReentrantLock } from './reentrant-lock.js';
import { retryUntilDeadline } from './retry-until-deadline.js';
import { toWaitTerms } from './wait-options.js';

/** Redisson's own, in ms. */
const FIRST_PAUSE = 1;
const LONGEST_PAUSE = 128;

/**
 * Redisson's RSpinLock: the same lock as {@link ReentrantLock}, waited for by trying again after 1, 2, 4 … 128 ms instead of listening
 * for its release. For Redis servers without pub/sub, or many short waits for ever new names; otherwise the lock that listens is
 * served sooner, and asks less. There is no order among those who spin.
 *
 * @publicApi
 */
export class SpinLock extends ReentrantLock {
  /** @internal */
  override get batch(): undefined {
    return undefined;
  }

  /** @internal */
  override async claim({ waitTime, leaseTime, signal }: ClaimTerms): Promise<LockLease> {
    const { context, settings } = this.engine;
    const terms = toWaitTerms(waitTime, settings.waitTime, { signal }, `lock() of '${this.name}'`);
    const backOff = new BackOff(context.runtime, FIRST_PAUSE, LONGEST_PAUSE);
    return retryUntilDeadline(context.runtime, terms, this.name, [context.backend], backOff, (deadline) =>
      super.claim({ waitTime: 0, leaseTime, signal: deadline.signal }),
    );
  }
}
