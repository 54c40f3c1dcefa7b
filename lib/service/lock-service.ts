import type { LockState } from '../backends/lock-backend.js';
import type { Milliseconds } from '../engine/duration.js';
import { LockConfigurationError } from '../engine/errors.js';
import type { LockEventName, LockEvents } from '../engine/events.js';
import type { Lease } from '../engine/lease/lease.js';
import type { LockLease } from '../engine/lease/lock-lease.js';
import type { LockEngine, LockNames } from '../engine/lock-engine.js';
import type { LockOptions } from '../engine/lock-options.js';
import { CountDownLatch } from '../locks/count-down-latch.js';
import { FairLock } from '../locks/fair-lock.js';
import { FencedLock } from '../locks/fenced-lock.js';
import type { LockHandle } from '../locks/lock-handle.js';
import { MultiLock } from '../locks/multi-lock.js';
import { PermitExpirableSemaphore } from '../locks/permit-semaphore.js';
import { ReadWriteLock } from '../locks/read-write-lock.js';
import { RedLock } from '../locks/red-lock.js';
import { ReentrantLock } from '../locks/reentrant-lock.js';
import { Semaphore } from '../locks/semaphore.js';
import { SpinLock } from '../locks/spin-lock.js';

/** What {@link LockService.inspect} saw. @publicApi */
export interface LockInspection {
  readonly locked: boolean;
  readonly type: LockState['mode'];
  /** Who holds it, whether that is this service, and for how many ms unless renewed (−1: without limit). */
  readonly owners: readonly { readonly owner: string; readonly mine: boolean; readonly remainingTime: number }[];
  /** Callers of this process that wait; for a fair lock those of all processes. */
  readonly waiting: number;
  /** The last token, where the lock is held here or is a fenced one. */
  readonly fencingToken?: number;
}

/**
 * Distributed locks. Inject it, or make one without NestJS by `createLockService(options)`.
 *
 * ```ts
 * await this.locks.withLock('order:42', async (lease) => {
 *   await this.bank.charge(42, { fencingToken: lease.fencingToken });
 * });
 * ```
 *
 * All methods take one name, or a list of names that are acquired all or none. They throw LockKeyError for a bad name and
 * LockConfigurationError for a bad option, before the backend is asked.
 *
 * @publicApi
 */
export class LockService {
  /** @internal */
  constructor(
    /** @internal */
    readonly engine: LockEngine,
  ) {}

  /**
   * Waits until the lock is held, and gives the lease. Release it, or let `await using` do so. Inside a scope that holds the lock it is
   * re-entry, which has the lease of what it re-enters: its own `leaseTime` is not applied.
   *
   * @throws LockBusyError when `waitTime` is over, LockAbortedError when `signal` aborts or the service shuts down,
   *   LockUnavailableError when the backend gives no answer within `waitTime` (without one, an outage is waited out)
   */
  acquire(names: LockNames, options?: LockOptions): Promise<Lease> {
    return this.engine.acquire(names, options);
  }

  /** As {@link acquire}, but `null` where the lock is busy, and without waiting unless `waitTime` is given. */
  tryAcquire(names: LockNames, options?: LockOptions): Promise<Lease | null> {
    return this.engine.tryAcquire(names, options);
  }

  /**
   * Runs `body` while the lock is held. Inside it, acquiring the same name is re-entry, and `currentLease()` gives the lease. Re-entry has
   * the lease of what it re-enters: its own `leaseTime` is not applied, and where that lease is fixed, it ends with it.
   *
   * @returns what the body returns
   * @throws what the body throws; LockLostError when the body ended well but the lock was lost meanwhile (see `onLost`)
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

  /** Runs `body` in a scope of `lease`, then releases it. @internal for the decorator */
  holdWhile<T>(
    lease: Lease,
    body: (lease: Lease) => T | Promise<T>,
    options?: { readonly holdAtLeast?: Milliseconds },
  ): Promise<T> {
    return this.engine.holdWhile(lease as LockLease, body, options?.holdAtLeast);
  }

  /** Whether anybody holds the lock, here or elsewhere. */
  async isLocked(name: string): Promise<boolean> {
    return (await this.engine.inspect(name)).mode !== 'free';
  }

  /** Who holds the lock, for how long, and how many wait. For people and dashboards: it may be outdated when it arrives. */
  async inspect(name: string): Promise<LockInspection> {
    const { mode, owners, queue, token } = await this.engine.inspect(name);
    const { clientId } = this.engine.context;
    const mine = this.engine.leaseOn(name);
    const fencingToken = token ?? mine?.tokens.get(name);
    return {
      locked: mode !== 'free',
      type: mode,
      owners: owners.map(({ owner, remaining }) => ({
        owner,
        mine: owner.startsWith(`${clientId}:`),
        remainingTime: remaining,
      })),
      waiting: Math.max(queue.length, this.engine.waiting(name)),
      ...(fencingToken === undefined ? {} : { fencingToken }),
    };
  }

  /**
   * Frees the lock whoever holds it, and wakes who waits. A lease of this service is lost at once, those of other processes as
   * soon as they hear of it, at their next renewal at the latest. For operators: the body that held it may still run.
   *
   * @returns whether it was held
   */
  forceRelease(name: string): Promise<boolean> {
    return this.engine.forceRelease(name);
  }

  /** A handle in Redisson's style, for those who come from it. */
  getLock(name: string): ReentrantLock {
    return new ReentrantLock(this.engine, name);
  }

  /** A lock that serves in the order of arrival, over all processes. */
  getFairLock(name: string): FairLock {
    return new FairLock(this.engine, name);
  }

  /** A lock that gives each holder a larger number than the one before, from a counter that it shares with Java. */
  getFencedLock(name: string): FencedLock {
    return new FencedLock(this.engine, name);
  }

  /** A lock for many readers or one writer. */
  getReadWriteLock(name: string): ReadWriteLock {
    return new ReadWriteLock(this.engine, name);
  }

  /** A lock that is waited for by trying again, with an exponential back-off, instead of by messages. */
  getSpinLock(name: string): SpinLock {
    return new SpinLock(this.engine, name);
  }

  /**
   * All of these locks, or none. They may be of any kind, and of other services.
   *
   * @throws LockKeyError when there are none, LockConfigurationError when one is no lock, or is in it in two ways that exclude each other
   */
  getMultiLock(...locks: LockHandle[]): MultiLock {
    return new MultiLock(locks);
  }

  /**
   * A majority of these locks, which are those of independent services.
   *
   * @throws LockKeyError when there are none, LockConfigurationError when one is no lock
   */
  getRedLock(...locks: LockHandle[]): RedLock {
    return new RedLock(locks);
  }

  /**
   * Permits that all processes share.
   *
   * @throws LockKeyError for a bad name, LockConfigurationError with `quorum` (this and the next two)
   */
  getSemaphore(name: string): Semaphore {
    return new Semaphore(this.engine, name);
  }

  /** Permits with an id and a lease each, which come back when their process dies. */
  getPermitExpirableSemaphore(name: string): PermitExpirableSemaphore {
    return new PermitExpirableSemaphore(this.engine, name);
  }

  /** Lets callers wait until something was done a number of times. */
  getCountDownLatch(name: string): CountDownLatch {
    return new CountDownLatch(this.engine, name);
  }

  /**
   * Listens to what happens to the locks of this service. An `error` that nobody listens for is logged.
   *
   * @returns a function that takes the listener off again
   */
  on<E extends LockEventName>(event: E, listener: (details: LockEvents[E]) => void): () => void {
    return this.engine.context.events.on(event, listener);
  }

  /**
   * Stops giving locks and waits for the bodies that hold one, up to `shutdownTimeout`; those that still run then get their
   * signal aborted, and their locks lapse.
   */
  drain(): Promise<void> {
    return this.engine.drain();
  }

  /** {@link drain}s, then closes the connections that this service opened itself. */
  close(): Promise<void> {
    return this.engine.close();
  }
}
