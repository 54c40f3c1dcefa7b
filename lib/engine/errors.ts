import type { HolderClient } from './describe-holder.js';

const BRANDS = Symbol.for('nestjs-redis-lock.errors');

/**
 * The base class of all errors of this library. `instanceof` also recognises errors of another copy of the library in
 * the same process, such as one copy loaded by `import` and one by `require`.
 *
 * @publicApi
 */
export class LockError extends Error {
  static readonly brand: string = 'LockError';

  override get name(): string {
    return (this.constructor as typeof LockError).brand;
  }

  /** @param lockName the lock's name; several names are joined by `, `; `''` when no lock is involved */
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
 * The lock was still held by others when `waitTime` ended.
 *
 * @publicApi
 */
export class LockBusyError extends LockError {
  static override readonly brand: string = 'LockBusyError';

  /**
   * The holder's application, host, pid and method, if they could be determined while the caller waited. Meant for
   * logs: the property is not enumerable, so that errors sent to clients of the application do not reveal it.
   */
  declare readonly holderClient: HolderClient | undefined;

  /**
   * @param remainingTime milliseconds until the holder's lease ends unless it is renewed; −1 when unknown or unlimited
   * @param holder the last known owner, if any
   * @param fixedLease whether the holder belongs to this process and its lease is never renewed. The lock is then free
   * after `remainingTime` at the latest. `false` means that this is not known.
   */
  constructor(
    message: string,
    lockName: string,
    readonly remainingTime: number,
    readonly holder: string | undefined,
    readonly fixedLease = false,
    holderClient?: HolderClient,
    options?: { cause?: unknown },
  ) {
    super(message, lockName, options);
    Object.defineProperty(this, 'holderClient', { value: holderClient });
  }
}

/**
 * A later call has taken the place of this one, which waited with `newest: true`. The lock is acquired for the later
 * call, so nothing has to be done.
 *
 * @publicApi
 */
export class LockSupersededError extends LockBusyError {
  static override readonly brand = 'LockSupersededError';
}

/**
 * The lease ended before its owner released it, because it expired or was force-released. Others may hold the lock by
 * now.
 *
 * @publicApi
 */
export class LockLostError extends LockError {
  static override readonly brand = 'LockLostError';
}

/**
 * A lease was extended or checked after it had been released. The lock is not affected.
 *
 * @publicApi
 */
export class LockNotOwnedError extends LockError {
  static override readonly brand = 'LockNotOwnedError';
}

/**
 * A lock name, or a part of one, is invalid. Nothing was locked.
 *
 * @publicApi
 */
export class LockKeyError extends LockError {
  static override readonly brand = 'LockKeyError';
}

/**
 * The wait was aborted by the caller's AbortSignal (its reason is the `cause`) or by the service's shutdown.
 *
 * @publicApi
 */
export class LockAbortedError extends LockError {
  static override readonly brand = 'LockAbortedError';

  /**
   * Whether the call got no lock because its service is shutting down. Nothing was locked, so another process can do the
   * same work.
   */
  readonly byShutdown: boolean;

  constructor(message: string, lockName: string, options?: { cause?: unknown; byShutdown?: boolean }) {
    super(message, lockName, options);
    this.byShutdown = options?.byShutdown === true;
  }
}

/**
 * A caller that holds the read lock asked for the write lock of the same name, so it would wait for itself. Release the
 * read lock first.
 *
 * @publicApi
 */
export class LockUpgradeError extends LockError {
  static override readonly brand = 'LockUpgradeError';
}

/** A caller in a deadlock. @publicApi */
export interface DeadlockMember {
  /** The owner id under which it holds a lock, `<clientId>:<n>`. */
  readonly owner: string;
  /** The lock that this caller holds and that the previous member waits for. */
  readonly holds: string;
  /** The lock that this caller waits for and that the next member holds. */
  readonly waitsFor: string;
  /** The process in which this caller runs; undefined if it is not known. */
  readonly client?: HolderClient;
}

/**
 * The caller holds a lock and waits for another one whose holder waits for the caller, directly or through others, so
 * none of them could continue. Exactly one of them, the last to begin its wait, gets this error within two seconds.
 * Once it has released its locks, the others continue, and the refused work can be retried.
 *
 * @see docs/deadlocks.md: which deadlocks are detected, and which are not
 * @publicApi
 */
export class LockDeadlockError extends LockError {
  static override readonly brand = 'LockDeadlockError';

  /**
   * @param lockName the lock that the refused caller waited for
   * @param cycle the members in the order of their waits: the refused caller, the holder of its lock, and so on. The
   *   last waits for the first
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
 * The backend did not give a usable answer in time. The `cause` says why.
 *
 * @publicApi
 */
export class LockUnavailableError extends LockError {
  static override readonly brand = 'LockUnavailableError';
}

/**
 * An option, a decorator or the set-up of the module is wrong. The message says what is wrong, where, and how to fix
 * it.
 *
 * @publicApi
 */
export class LockConfigurationError extends LockError {
  static override readonly brand = 'LockConfigurationError';

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, '', options);
  }
}
