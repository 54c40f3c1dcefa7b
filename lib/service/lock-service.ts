import { LockConfigurationError } from '../engine/errors.js';
import type { LockEventName, LockEvents } from '../engine/events/events.js';
import type { Lease } from '../engine/lease/lease.js';
import type { LockLease } from '../engine/lease/lock-lease.js';
import type { LockEngine, LockNames } from '../engine/lock-engine.js';
import type { Milliseconds } from '../engine/terms/duration.js';
import type { AcquisitionTerms, LockOptions } from '../engine/terms/lock-options.js';
import { MultiLock } from '../locks/combined/multi-lock.js';
import { RedLock } from '../locks/combined/red-lock.js';
import { CountDownLatch } from '../locks/count-down-latch.js';
import { FairLock } from '../locks/fair-lock.js';
import { FencedLock } from '../locks/fenced-lock.js';
import type { LockHandle } from '../locks/lock-handle.js';
import { PermitExpirableSemaphore } from '../locks/permit-semaphore.js';
import { ReadWriteLock } from '../locks/read-write-lock.js';
import { ReentrantLock } from '../locks/reentrant-lock.js';
import { Semaphore } from '../locks/semaphore.js';
import { SpinLock } from '../locks/spin-lock.js';
import { IS_LOCK_SERVICE } from './is-lock-service.js';
import type { LockInspection } from './lock-inspection.js';

/**
 * Distributed locks. Inject it, or make one without NestJS with `createLockService(options)`.
 *
 * ```ts
 * await this.locks.withLock('order:42', async (lease) => {
 *   await this.bank.charge(42, { fencingToken: lease.fencingToken });
 * });
 * ```
 *
 * `acquire`, `tryAcquire` and `withLock` take one name, or a list of names of which all are locked or none; everything else takes
 * one name. A bad name is a LockKeyError and a bad option a LockConfigurationError, before the backend is asked.
 *
 * @publicApi
 */
export class LockService {
  /** @internal */
  readonly [IS_LOCK_SERVICE] = true;

  /** @internal */
  constructor(
    /** @internal */
    readonly engine: LockEngine,
  ) {}

  /**
   * Waits until the lock is held, and returns its lease. Release it, or let `await using` do so. Inside a scope that holds the lock,
   * this is re-entry: it shares the lease that is held, and its own `leaseTime` is not applied.
   *
   * @throws LockBusyError when `waitTime` is over
   * @throws LockDeadlockError when the caller holds a lock, and its wait closes a circle of waits: see docs/deadlocks.md
   * @throws LockAbortedError when `signal` aborts or the service shuts down
   * @throws LockUnavailableError when the backend does not answer within `waitTime` (without one, an outage is waited out)
   * @throws LockUpgradeError when the scope holds the read lock of the name and asks for its write lock
   * @throws LockKeyError, LockConfigurationError for a bad name or option
   */
  acquire(names: LockNames, options?: LockOptions): Promise<Lease> {
    return this.engine.acquire(names, options);
  }

  /**
   * Like {@link acquire}, but returns `null` where the lock is busy, and does not wait unless `waitTime` is given.
   *
   * @throws what {@link acquire} throws, except LockBusyError
   */
  tryAcquire(names: LockNames, options?: LockOptions): Promise<Lease | null> {
    return this.engine.tryAcquire(names, options);
  }

  /**
   * Runs `body` while the lock is held, then releases it. Inside the body, acquiring the same name is re-entry, and `currentLease()`
   * is the lease. Re-entry shares the lease that is held: its own `leaseTime` is not applied, and a fixed lease ends when it ends.
   *
   * @returns what the body returns
   * @throws what {@link acquire} throws, and what the body throws
   * @throws LockLostError when the body succeeded but the lock was lost meanwhile (see `onLost`)
   */
  withLock<T>(names: LockNames, body: (lease: Lease) => T | Promise<T>): Promise<T>;
  withLock<T>(names: LockNames, options: LockOptions, body: (lease: Lease) => T | Promise<T>): Promise<T>;
  async withLock<T>(
    names: LockNames,
    optionsOrBody: LockOptions | ((lease: Lease) => T | Promise<T>),
    bodyAfterOptions?: (lease: Lease) => T | Promise<T>,
  ): Promise<T> {
    const [options, body] =
      typeof optionsOrBody === 'function' ? [undefined, optionsOrBody] : [optionsOrBody, bodyAfterOptions];
    if (typeof body !== 'function')
      throw new LockConfigurationError('withLock(): the last argument must be the function to run');
    return this.engine.holdWhile(await this.engine.acquire(names, options, 'withLock()'), body);
  }

  /** For the decorator: resolves its options once, instead of at each call. @internal */
  termsOf(options: LockOptions | undefined, what: string): AcquisitionTerms {
    return this.engine.termsOf(options, what);
  }

  /** For the decorator: {@link acquire} under terms from {@link termsOf}. @internal */
  acquireUnder(names: LockNames, terms: AcquisitionTerms, what: string): Promise<Lease> {
    return this.engine.acquireUnder(names, terms, what);
  }

  /** For the decorator: runs `body` in a scope of `lease`, then releases the lease. @internal */
  holdWhile<T>(
    lease: Lease,
    body: (lease: Lease) => T | Promise<T>,
    options?: { readonly holdAtLeast?: Milliseconds },
  ): Promise<T> {
    return this.engine.holdWhile(lease as LockLease, body, options?.holdAtLeast);
  }

  /**
   * Whether anybody holds the lock, here or elsewhere.
   *
   * @throws LockUnavailableError when the backend does not answer, LockKeyError for a bad name
   */
  async isLocked(name: string): Promise<boolean> {
    return (await this.engine.inspect(name)).mode !== 'free';
  }

  /**
   * Who holds the lock, for how long, and how many callers wait for it. It is meant for people and dashboards: when it arrives, it may be outdated.
   *
   * @throws LockUnavailableError when the backend does not answer, LockKeyError for a bad name
   */
  async inspect(name: string): Promise<LockInspection> {
    const { mode, owners, queue, token } = await this.engine.inspect(name);
    const fencingToken = token ?? this.engine.leaseOn(name)?.tokens.get(name);
    return {
      locked: mode !== 'free',
      type: mode,
      owners: owners.map(({ owner, remaining }) => ({
        owner,
        mine: this.engine.isMine(owner),
        remainingTime: remaining,
      })),
      waiting: Math.max(queue.length, this.engine.waiting(name)),
      ...(fencingToken === undefined ? {} : { fencingToken }),
    };
  }

  /**
   * Frees the lock, whoever holds it, and wakes its waiters. A lease of this service is lost at once; those of other processes are
   * lost when they hear of it, at their next renewal at the latest. For operators: the body that held the lock may still run.
   *
   * @returns whether it was held
   * @throws LockUnavailableError when the backend does not answer, LockKeyError for a bad name
   */
  forceRelease(name: string): Promise<boolean> {
    return this.engine.forceRelease(name);
  }

  /**
   * A handle on the lock, with the methods of Redisson's RLock. Making a handle costs nothing and asks nothing: a bad name is
   * refused when it is locked.
   */
  getLock(name: string): ReentrantLock {
    return new ReentrantLock(this.engine, name);
  }

  /** A lock that serves its callers in the order of their arrival, over all processes. */
  getFairLock(name: string): FairLock {
    return new FairLock(this.engine, name);
  }

  /** A lock whose fencing tokens come from a counter that it shares with Java. */
  getFencedLock(name: string): FencedLock {
    return new FencedLock(this.engine, name);
  }

  /** A lock for many readers or one writer. */
  getReadWriteLock(name: string): ReadWriteLock {
    return new ReadWriteLock(this.engine, name);
  }

  /** A lock whose callers try again, with an exponential back-off, instead of waiting for a message. */
  getSpinLock(name: string): SpinLock {
    return new SpinLock(this.engine, name);
  }

  /**
   * All of these locks, or none. They may be of any kind, and of other services.
   *
   * @throws LockKeyError when there are none
   * @throws LockConfigurationError when an argument is not a lock, or when the same lock is given in two ways that exclude each other
   */
  getMultiLock(...locks: LockHandle[]): MultiLock {
    return new MultiLock(locks);
  }

  /**
   * A majority of these locks, each of which belongs to an independent service.
   *
   * @throws LockKeyError when there are none, LockConfigurationError when an argument is not a lock
   */
  getRedLock(...locks: LockHandle[]): RedLock {
    return new RedLock(locks);
  }

  /**
   * Permits that all processes share.
   *
   * @throws LockKeyError for a bad name, LockConfigurationError when the service is a quorum
   */
  getSemaphore(name: string): Semaphore {
    return new Semaphore(this.engine, name);
  }

  /**
   * Permits with an id and a lease each, which come back when their process dies.
   *
   * @throws LockKeyError for a bad name, LockConfigurationError when the service is a quorum
   */
  getPermitExpirableSemaphore(name: string): PermitExpirableSemaphore {
    return new PermitExpirableSemaphore(this.engine, name);
  }

  /**
   * Lets callers wait until something has been done a number of times.
   *
   * @throws LockKeyError for a bad name, LockConfigurationError when the service is a quorum
   */
  getCountDownLatch(name: string): CountDownLatch {
    return new CountDownLatch(this.engine, name);
  }

  /**
   * Listens to what happens to the locks of this service. An `error` that nobody listens for is logged.
   *
   * @returns a function that removes the listener
   * @throws TypeError when there is no such event
   */
  on<E extends LockEventName>(event: E, listener: (details: LockEvents[E]) => void): () => void {
    return this.engine.on(event, listener);
  }

  /**
   * Stops giving out locks and waits up to `shutdownTimeout` for the bodies that hold one. The signals of those that still run are
   * then aborted, and their locks lapse.
   */
  drain(): Promise<void> {
    return this.engine.drain();
  }

  /** {@link drain}s, then closes the connections that this service opened itself. */
  close(): Promise<void> {
    return this.engine.close();
  }
}
