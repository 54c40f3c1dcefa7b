import type { Duration } from '../duration.js';

/**
 * One successful acquisition of one lock, or of several at once: proof that this code holds it, for as long as `held` says so.
 *
 * A lease is released once; a released lease never sends anything again. Whether it still holds is judged by this
 * process's clocks, more strictly than the backend does: it can be lost here a moment before others can take the lock, not after.
 *
 * ```ts
 * await using lease = await locks.acquire('import:nightly');
 * for (const file of files) {
 *   lease.assertHeld();
 *   await load(file, { signal: lease.signal, fencingToken: lease.fencingToken });
 * }
 * ```
 *
 * The lease of a multi-lock stands for those of its members: it is held while all of them are, that of a red lock while a majority is.
 *
 * @publicApi
 */
export interface Lease {
  /** The lock's name; several are joined by `, `. */
  readonly name: string;

  /** The names of all locks, sorted. */
  readonly names: readonly string[];

  /**
   * The owner's field in Redis: `<clientId>:<n>`. A lease that was handed on inside the process, or re-entered, has its predecessor's.
   * Where the locks of a multi-lock have an owner each, they are joined by `, `.
   */
  readonly owner: string;

  /**
   * A number that grows with each acquisition of this lock. Hand it to the resource, which refuses a lower one than it has seen, and takes the
   * same one again: a lease may write several times. It is above 10¹⁵: a database needs 64 bits for it (`bigint`).
   *
   * @throws LockError for several locks whose tokens differ: use {@link tokens}
   */
  readonly fencingToken: number;

  /**
   * The fencing token of each lock by its name. Where the members of a multi-lock have the same name in different services, the key is
   * `<name> (<where it is kept>)`.
   */
  readonly tokens: ReadonlyMap<string, number>;

  /** Aborts with LockLostError the moment the lease is lost, or with LockAbortedError when shutdown stops waiting for it. */
  readonly signal: AbortSignal;

  /** Whether the lock is certainly held at this moment. */
  readonly held: boolean;

  /** Milliseconds for which the lock is certainly held without another renewal; 0 when it is not. */
  remainingTime(): number;

  /**
   * Returns when the lock is held.
   *
   * @throws LockLostError when it was lost, LockNotOwnedError when it was released
   */
  assertHeld(): void;

  /**
   * Sets the lease to `duration` milliseconds from now. A lease kept by the watchdog stays with it, and gets no shorter.
   *
   * @throws LockLostError when the lock is lost (also when this call finds out), LockNotOwnedError when it was released,
   *   LockUnavailableError when the backend does not answer, LockConfigurationError for a duration below 100 ms or above 10 years
   */
  extend(duration: Duration): Promise<void>;

  /**
   * Runs `body` in a scope of this lease: what it acquires under the same names is re-entry, and `currentLease()` is this lease. What
   * several such scopes acquire under one name goes in one after the other. The lease is not released by it.
   *
   * @throws LockLostError when the lock was lost before, also where only the clock tells so; LockNotOwnedError when it was released
   */
  run<T>(body: (lease: Lease) => T | Promise<T>): Promise<T>;

  /**
   * Gives this share back; with the last share the lock becomes free, or goes to the next waiter. Calling it again is harmless.
   *
   * @throws LockLostError when the lease had been lost (with `onLost: 'warn'` that is only logged). A backend that cannot be
   *   reached is no error: the release is tried again in the background, and the lock lapses with its lease.
   */
  release(): Promise<void>;

  /** As {@link release}. Where the block threw too, JavaScript puts both into a SuppressedError. */
  [Symbol.asyncDispose](): Promise<void>;
}
