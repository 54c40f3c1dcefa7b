import type { LockType } from '../backends/lock-backend.js';
import type { Duration } from '../engine/duration.js';
import { LockBusyError } from '../engine/errors.js';
import type { Lease } from '../engine/lease/lease.js';
import type { LockEngine } from '../engine/lock-engine.js';
import type { LockOptions } from '../engine/lock-options.js';
import type { MemberLease } from './combined-lease.js';
import type { WaitOptions } from './wait-options.js';

/** How a handle acquires. */
export type ClaimTerms = Pick<LockOptions, 'waitTime' | 'leaseTime' | 'signal'>;

/**
 * A lock in the style of Redisson: a name with a kind. It holds nothing, costs nothing and may be shared by everybody. `lock()` gives a
 * {@link Lease}, and what was given is what can be released: there is no `unlock()`.
 *
 * Every `lock()` is a stranger to every other one, on the same handle too, and waits for it. Inside a scope that holds the lock (of
 * `withLock`, `lease.run()` or a decorated method) it is re-entry.
 *
 * ```ts
 * const lock = locks.getLock('stock:42');
 * await using lease = await lock.lock();
 * await move(42, lease.fencingToken);
 * ```
 *
 * @publicApi
 */
export abstract class LockHandle {
  /** The lock's name, without the key prefix; several are joined by `, `. */
  abstract readonly name: string;

  /** Alike for handles of the same lock. @internal */
  abstract readonly identity: string;

  /** The services that keep it. @internal */
  abstract readonly engines: readonly LockEngine[];

  /** Its place among others, alike in all processes. @internal */
  abstract readonly order: string;

  /** By what it can be acquired in one command with others; undefined: by itself alone. @internal */
  abstract readonly batch: { readonly engine: LockEngine; readonly type: LockType } | undefined;

  /** What it consists of, where that is as good as itself. @internal */
  get parts(): readonly LockHandle[] {
    return [this];
  }

  /** @internal */
  abstract claim(terms: ClaimTerms): Promise<MemberLease>;

  /** How many scopes around the caller hold it. */
  abstract getHoldCount(): number;

  /** Whether anybody holds it, here or elsewhere. */
  abstract isLocked(): Promise<boolean>;

  /**
   * Waits until the lock is held, and gives the lease. Release it, or let `await using` do so.
   *
   * @param leaseTime how long, without renewal; absent: until it is released, kept by the watchdog. Re-entry has the lease of what it
   *   re-enters
   * @throws LockBusyError when the module's `waitTime` is over (there is none by default), LockAbortedError when `signal` aborts or the
   *   service shuts down, LockUnavailableError when the backend gives no answer in time (an outage is waited out unless there is a
   *   `waitTime`)
   */
  lock(leaseTime?: Duration, options?: WaitOptions): Promise<Lease> {
    return this.claim({ leaseTime, signal: options?.signal });
  }

  /**
   * Tries for at most `waitTime` (default 0: once).
   *
   * @returns the lease; `null` when the lock stayed busy
   * @throws LockAbortedError, LockUnavailableError
   */
  async tryLock(waitTime: Duration = 0, leaseTime?: Duration, options?: WaitOptions): Promise<Lease | null> {
    try {
      return await this.claim({ waitTime, leaseTime, signal: options?.signal });
    } catch (error) {
      if (error instanceof LockBusyError) return null;
      throw error;
    }
  }

  /** Whether a scope around the caller holds it: of `withLock`, `lease.run()` or a decorated method. */
  isHeldByCurrentScope(): boolean {
    return this.getHoldCount() > 0;
  }
}
