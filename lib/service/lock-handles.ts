import type { LockEngine } from '../engine/lock-engine.js';
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
import type { SemaphoreOptions } from '../locks/semaphore-options.js';
import { SpinLock } from '../locks/spin-lock.js';

/** The handles of a lock service, by Redisson's names. @publicApi */
export abstract class LockHandles {
  /** @internal */
  constructor(
    /** @internal */
    readonly engine: LockEngine,
  ) {}

  /**
   * A handle on the lock, with the methods of Redisson's RLock. Making a handle costs nothing and asks nothing: a bad
   * name is refused when it is locked.
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
   * @throws LockConfigurationError when an argument is not a lock, or when the same lock is given in two ways that
   * exclude each other
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
   * Permits that all processes share: `getSemaphore('mail-connections', { permits: 10 })`.
   *
   * @throws LockKeyError for a bad name, LockConfigurationError for a bad option, or when the service is a quorum
   */
  getSemaphore(name: string, options?: SemaphoreOptions): Semaphore {
    return new Semaphore(this.engine, name, options);
  }

  /**
   * Permits with an id and a lease each, which come back when their process dies.
   *
   * @throws LockKeyError for a bad name, LockConfigurationError for a bad option, or when the service is a quorum
   */
  getPermitExpirableSemaphore(name: string, options?: SemaphoreOptions): PermitExpirableSemaphore {
    return new PermitExpirableSemaphore(this.engine, name, options);
  }

  /**
   * Lets callers wait until something has been done a number of times.
   *
   * @throws LockKeyError for a bad name, LockConfigurationError when the service is a quorum
   */
  getCountDownLatch(name: string): CountDownLatch {
    return new CountDownLatch(this.engine, name);
  }
}
