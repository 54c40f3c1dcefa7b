import type { HolderClient } from './clients/describe-holder.js';

const BRANDS = Symbol.for('nestjs-redis-lock.errors');

/**
 * The base class of all errors of this library. `instanceof` also recognises errors of another copy of the library in
 * the same process (one loaded by `import`, one by `require`).
 *
 * @publicApi
 */
export class LockError extends Error {
  static readonly brand: string = 'LockError';

  override get name(): string {
    return (this.constructor as typeof LockError).brand;
  }

  /** @param lockName the lock in question; `''` when there is none, and several names joined by `, ` */
  constructor(
    message: string,
    readonly lockName: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }

  get [BRANDS](): readonly string[] {
    const brands: string[] = [];
    for (
      let type = this.constructor as typeof LockError;
      typeof type.brand === 'string';
      type = Object.getPrototypeOf(type)
    ) {
      brands.push(type.brand);
    }
    return brands;
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    if (Object.hasOwn(this, 'brand')) {
      const brands = (value as { [BRANDS]?: readonly string[] } | null | undefined)?.[BRANDS];
      return Array.isArray(brands) && brands.includes(this.brand);
    }
    return Object.prototype.isPrototypeOf.call(this.prototype, value as object);
  }
}

/**
 * Somebody else held the lock until `waitTime` was over.
 *
 * @publicApi
 */
export class LockBusyError extends LockError {
  static override readonly brand = 'LockBusyError';

  /**
   * Who the holder is, if that was found out while the caller waited: application, host, pid, method. For logs: it
   * is not enumerable, so that what is sent to clients of the application does not show it.
   */
  declare readonly holderClient: HolderClient | undefined;

  /**
   * @param remainingTime milliseconds until the holder's lease ends unless it is renewed; −1 when unknown or unlimited
   * @param holder the last owner that was seen, if any
   * @param fixedLease the holder belongs to this process and its lease is never renewed: the lock is free after
   * `remainingTime` at the latest.
   *   False: that is not known
   */
  constructor(
    message: string,
    lockName: string,
    readonly remainingTime: number,
    readonly holder: string | undefined,
    readonly fixedLease = false,
    holderClient?: HolderClient,
  ) {
    super(message, lockName);
    Object.defineProperty(this, 'holderClient', { value: holderClient });
  }
}

/**
 * The lease ended before its owner released it: it expired, or was force-released. Others may hold the lock by now.
 *
 * @publicApi
 */
export class LockLostError extends LockError {
  static override readonly brand = 'LockLostError';
}

/**
 * A lease was extended or asked about after it had been released. The lock is not affected.
 *
 * @publicApi
 */
export class LockNotOwnedError extends LockError {
  static override readonly brand = 'LockNotOwnedError';
}

/**
 * A lock name, or a part of one, cannot be used. Nothing was locked.
 *
 * @publicApi
 */
export class LockKeyError extends LockError {
  static override readonly brand = 'LockKeyError';
}

/**
 * The wait was ended by the caller's AbortSignal (its reason is the `cause`) or by the service's shutdown.
 *
 * @publicApi
 */
export class LockAbortedError extends LockError {
  static override readonly brand = 'LockAbortedError';
}

/**
 * A reader asked for the write lock of the same name: it would wait for itself. Release the read lock first.
 *
 * @publicApi
 */
export class LockUpgradeError extends LockError {
  static override readonly brand = 'LockUpgradeError';
}

/** A caller in a deadlock. @publicApi */
export interface DeadlockMember {
  /** The owner by which it holds a lock, `<clientId>:<n>`. */
  readonly owner: string;
  /** The lock that it holds, and that the member before it waits for. */
  readonly holds: string;
  /** The lock that it waits for, and that the next member holds. */
  readonly waitsFor: string;
  /** The process that it runs in; undefined: not known. */
  readonly client?: HolderClient;
}

/**
 * The caller holds a lock, and waits for another one whose holder waits for the caller, directly or through others:
 * none of them could ever continue. Exactly one of them gets this error, within two seconds: the one that began to wait
 * last. When its body ends with it, the others go on, and it can be tried again.
 *
 * @see docs/deadlocks.md: what is found, and what is not
 * @publicApi
 */
export class LockDeadlockError extends LockError {
  static override readonly brand = 'LockDeadlockError';

  /**
   * @param lockName the lock that the refused caller waited for
   * @param cycle who waits for whom: first the refused caller, then the holder of its lock, and so on. The last one
   * waits for the first
   */
  constructor(
    message: string,
    lockName: string,
    readonly cycle: readonly DeadlockMember[],
  ) {
    super(message, lockName);
  }
}

/**
 * The backend gave no usable answer in time; the `cause` says why.
 *
 * @publicApi
 */
export class LockUnavailableError extends LockError {
  static override readonly brand = 'LockUnavailableError';
}

/**
 * An option, a decorator or the set-up of the module is wrong; the message says which, where, and what to do.
 *
 * @publicApi
 */
export class LockConfigurationError extends LockError {
  static override readonly brand = 'LockConfigurationError';

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, '', options);
  }
}
