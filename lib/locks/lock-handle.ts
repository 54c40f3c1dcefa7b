import type { LockType } from '../backends/lock-backend.js';
import type { Lease } from '../engine/lease/lease.js';
import type { LockLease } from '../engine/lease/lock-lease.js';
import type { LockEngine, LockNames } from '../engine/lock-engine.js';
import type { Duration } from '../engine/terms/duration.js';
import type { LockOptions } from '../engine/terms/lock-options.js';
import { nullWhenBusy } from '../engine/waiting/null-when-busy.js';
import type { MemberLease } from './combined-lease.js';
import type { WaitOptions } from './wait-options.js';

/** The options of one acquisition through a handle. */
export interface LeaseRequest extends Pick<LockOptions, 'waitTime' | 'outageTimeout' | 'leaseTime' | 'signal'> {
  /** A red lock can do without this member: the wait for it is no part of a deadlock. */
  readonly tentative?: boolean;
}

/** Acquires locks of one type of a service. */
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
 * A lock in the style of Redisson: a name with a kind. It holds nothing, costs nothing and may be shared by everybody.
 * `lock()` returns a {@link Lease}, and releasing that lease is what frees the lock: there is no `unlock()`.
 *
 * Each call of `lock()` is a separate caller: a second call on the same handle waits for the first one's lease. Inside
 * a scope that holds the lock (of `withLock`, `lease.run()` or a decorated method), `lock()` is re-entry.
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

  /** The same for all handles of one lock. @internal */
  abstract readonly lockId: string;

  /** The engines of the services that keep the lock. @internal */
  abstract readonly engines: readonly LockEngine[];

  /** Sorts locks in an order that all processes share. @internal */
  abstract readonly sortKey: string;

  /** Locks of one engine and type can be acquired by one command; `undefined`: this one cannot. @internal */
  abstract readonly commandGroup: { readonly engine: LockEngine; readonly type: LockType } | undefined;

  /** The locks that have to be held so that this one is: itself; of a multi-lock, its members. @internal */
  get components(): readonly LockHandle[] {
    return [this];
  }

  /** @internal */
  abstract acquireLease(request: LeaseRequest): Promise<MemberLease>;

  /** Whether its backend has been away for `outageTimeout` during a call that began at `calledAt`. @internal */
  isOutageOver(calledAt: number, outageTimeout: number): boolean {
    const [engine] = this.engines;
    return engine.context.outages.isOver(engine.keyOf(this.name), calledAt, outageTimeout);
  }

  /** How many scopes around the caller hold it. */
  abstract getHoldCount(): number;

  /**
   * Whether anybody holds it, here or elsewhere.
   *
   * @throws LockUnavailableError when the backend does not answer, LockKeyError for a bad name
   */
  abstract isLocked(): Promise<boolean>;

  /**
   * Waits until the lock is held, and returns its lease. Release it, or let `await using` do so.
   *
   * @param leaseTime how long the lock is held, without renewal; absent: until it is released, renewed by the watchdog.
   * Re-entry
   *   shares the lease that is held
   * @throws LockBusyError when the module's `waitTime` is over (there is none by default)
   * @throws LockAbortedError when `signal` aborts or the service shuts down
   * @throws LockUnavailableError when the backend does not answer within `waitTime`, or for longer than `outageTimeout`
   * @throws LockUpgradeError when the scope holds the read lock of the name and asks for its write lock
   * @throws LockKeyError, LockConfigurationError for a bad name or argument
   */
  lock(leaseTime?: Duration, options?: WaitOptions): Promise<Lease> {
    return this.acquireLease({ leaseTime, signal: options?.signal, outageTimeout: options?.outageTimeout });
  }

  /**
   * Tries for at most `waitTime` (default 0: once).
   *
   * @returns the lease; `null` when the lock stayed busy
   * @throws what {@link lock} throws, except LockBusyError
   */
  async tryLock(waitTime: Duration = 0, leaseTime?: Duration, options?: WaitOptions): Promise<Lease | null> {
    const { signal, outageTimeout } = options ?? {};
    return nullWhenBusy(this.acquireLease({ waitTime, leaseTime, signal, outageTimeout }));
  }

  /** Whether a scope around the caller holds it: of `withLock`, `lease.run()` or a decorated method. */
  isHeldByCurrentScope(): boolean {
    return this.getHoldCount() > 0;
  }
}
