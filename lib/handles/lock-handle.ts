import type { LockType } from '../backends/lock-backend.js';
import { printsAs } from '../backends/prints-as.js';
import type { LockLease } from '../engine/lease/lock-lease.js';
import type { LockEngine } from '../engine/lock-engine.js';
import type { Duration } from '../engine/terms/duration.js';
import type { Lease } from '../engine/terms/lease.js';
import type { LockNames } from '../engine/terms/lock-name.js';
import type { LockOptions } from '../engine/terms/lock-options.js';
import { nullWhenBusy } from '../engine/wait/null-when-busy.js';
import type { MemberLease } from './combined-lease.js';
import type { WaitOptions } from './wait-options.js';

/** The options of one acquisition through a handle. */
export interface LeaseRequest extends Pick<LockOptions, 'waitTime' | 'outageTimeout' | 'leaseTime' | 'signal'> {
  /** Whether a red lock can do without this member. The wait for such a member is never part of a deadlock. */
  readonly tentative?: boolean;
}

/** Acquires locks of one type and one service. */
export function acquireThrough(
  engine: LockEngine,
  names: LockNames,
  type: LockType,
  { tentative, ...options }: LeaseRequest,
): Promise<LockLease> {
  if (tentative) return engine.acquireTentatively(names, { ...options, type }, 'lock()');
  return engine.acquire(names, { ...options, type }, 'lock()');
}

/**
 * A lock in the style of Redisson: a name and a lock type. A handle does not hold the lock, and may be shared. `lock()`
 * returns a {@link Lease}. Release that lease to free the lock: there is no `unlock()`.
 *
 * Each call of `lock()` counts as a separate caller. A second call on the same handle waits until the first call's
 * lease is released. Inside a scope that holds the lock (of `withLock`, `lease.run()` or a decorated method), `lock()`
 * is a re-entry.
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
  /** The lock's name, without the key prefix; several names are joined by `, `. */
  abstract readonly name: string;

  /** Equal for all handles of one lock. @internal */
  abstract readonly lockId: string;

  /** The engines of the services that keep the lock. @internal */
  abstract readonly engines: readonly LockEngine[];

  /** Sorts locks in the order that all processes use. @internal */
  abstract readonly sortKey: string;

  /** The engine and type of locks that one command can acquire together; `undefined`: not this lock. @internal */
  abstract readonly commandGroup: { readonly engine: LockEngine; readonly type: LockType } | undefined;

  /** The locks that have to be held: the lock itself, or the members of a multi-lock. @internal */
  get components(): readonly LockHandle[] {
    return [this];
  }

  /** @internal */
  abstract acquireLease(request: LeaseRequest): Promise<MemberLease>;

  /** Whether its backend has not answered for `outageTimeout` during a call that began at `calledAt`. @internal */
  isOutageOver(calledAt: number, outageTimeout: number): boolean {
    const [engine] = this.engines;
    return engine.services.outages.isOver(engine.keyOf(this.name), calledAt, outageTimeout);
  }

  /** How many scopes around the caller hold the lock. */
  abstract getHoldCount(): number;

  /**
   * Whether anybody holds the lock, in this process or elsewhere.
   *
   * @throws LockUnavailableError when the backend does not answer, LockKeyError for an invalid name
   */
  abstract isLocked(): Promise<boolean>;

  /**
   * Waits until the lock is held, and returns its lease. Release it, or let `await using` do so.
   *
   * @param leaseTime how long to hold the lock, without renewal. Default: until it is released, renewed by the
   *   watchdog. A re-entry shares the outer lease
   * @throws LockBusyError when the module's `waitTime` ends (by default there is no limit)
   * @throws LockAbortedError when `signal` aborts or the service shuts down
   * @throws LockUnavailableError when the backend does not answer within `waitTime`, or for longer than `outageTimeout`
   * @throws LockUpgradeError when the caller's scope holds the read lock of the name and requests its write lock
   * @throws LockKeyError, LockConfigurationError for an invalid name or argument
   */
  lock(leaseTime?: Duration, options?: WaitOptions): Promise<Lease> {
    return this.acquireLease({ leaseTime, signal: options?.signal, outageTimeout: options?.outageTimeout });
  }

  /**
   * Tries for at most `waitTime` (default 0: once).
   *
   * @returns the lease; `null` when the lock stayed busy
   * @throws the same errors as {@link lock}, except LockBusyError
   */
  async tryLock(waitTime: Duration = 0, leaseTime?: Duration, options?: WaitOptions): Promise<Lease | null> {
    const { signal, outageTimeout } = options ?? {};
    return nullWhenBusy(this.acquireLease({ waitTime, leaseTime, signal, outageTimeout }));
  }

  /** Whether a scope around the caller holds the lock: of `withLock`, `lease.run()` or a decorated method. */
  isHeldByCurrentScope(): boolean {
    return this.getHoldCount() > 0;
  }
}

printsAs(LockHandle, ({ name, commandGroup }) => ({ name, type: commandGroup?.type }));
