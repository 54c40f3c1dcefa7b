import { BackOff } from '../backends/back-off.js';
import type { LockLease } from '../engine/lease/lock-lease.js';
import type { LeaseRequest } from './lock-handle.js';
import { ReentrantLock } from './reentrant-lock.js';
import { retryUntilDeadline } from './retry-until-deadline.js';
import { toWaitTerms } from './wait-options.js';

/** Redisson's defaults, in milliseconds. */
const FIRST_PAUSE = 1;
const LONGEST_PAUSE = 128;

/**
 * Redisson's RSpinLock: the same lock as {@link ReentrantLock}, but its callers retry after 1, 2, 4 … 128 ms instead of
 * listening for its release. Use it for Redis servers without pub/sub, and for many short waits for names that are
 * rarely used twice. In all other cases a {@link ReentrantLock} is served sooner and sends fewer requests. Spinning
 * callers are served in no particular order.
 *
 * @publicApi
 */
export class SpinLock extends ReentrantLock {
  /** @internal */
  override get commandGroup(): undefined {
    return undefined;
  }

  /** @internal */
  override async acquireLease({ leaseTime, ...wait }: LeaseRequest): Promise<LockLease> {
    const { runtime, backend } = this.engine.settings;
    const terms = toWaitTerms(wait.waitTime, this.engine.waitDefaults, wait, `lock() of '${this.name}'`);
    const backOff = new BackOff(runtime, FIRST_PAUSE, LONGEST_PAUSE);
    return retryUntilDeadline({ runtime, terms, lock: this, backends: [backend], backOff }, (deadline) =>
      super.acquireLease({ waitTime: 0, leaseTime, signal: deadline.signal }),
    );
  }
}
