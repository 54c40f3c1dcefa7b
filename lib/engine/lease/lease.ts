import type { Duration } from '../terms/duration.js';

/**
 * The lease of several locks: a {@link Lease} without `fencingToken`, because each lock has its own token: see
 * {@link tokens}.
 *
 * @publicApi
 */
export interface MultiLease {
  /** The lock's name; several names are joined by `, `. */
  readonly name: string;

  /** The names of all locks, sorted. */
  readonly names: readonly string[];

  /**
   * The owner id in Redis: `<clientId>:<n>`. A hand-off inside the process and a re-entry keep the predecessor's id.
   * For several locks, the id of the first: see {@link owners}.
   */
  readonly owner: string;

  /**
   * The owner id of each lock by its name, under the same keys as {@link tokens}. Each lock of a lease has its own
   * owner id.
   */
  readonly owners: ReadonlyMap<string, string>;

  /**
   * The fencing token of each lock by its name. If members of a multi-lock have the same name in different services,
   * the key is `<name> (<where it is kept>)`.
   */
  readonly tokens: ReadonlyMap<string, number>;

  /**
   * Aborts with LockLostError as soon as the lease is lost, or with LockAbortedError when shutdown stops waiting for
   * it.
   */
  readonly signal: AbortSignal;

  /** Whether the lock is certainly held at this moment. */
  readonly held: boolean;

  /** Milliseconds for which the lock is certainly held without another renewal; 0 when it is not held. */
  remainingTime(): number;

  /**
   * Returns when the lock is held.
   *
   * @throws LockLostError when it was lost, LockNotOwnedError when it was released
   */
  assertHeld(): void;

  /**
   * Sets the lease to `duration` milliseconds from now. A lease that the watchdog renews stays renewed and does not get
   * shorter.
   *
   * @throws LockLostError when the lock is lost (also when this call finds out), LockNotOwnedError when it was
   *   released, LockUnavailableError when the backend does not answer, LockConfigurationError for a duration below 100
   *   ms or above 10 years
   */
  extend(duration: Duration): Promise<void>;

  /**
   * Runs `body` in a scope of this lease: acquiring the same names inside is a re-entry, and `currentLease()` returns
   * this lease. Several such scopes that acquire the same name are served one after another. The lease is not released
   * when `body` ends.
   *
   * @throws LockLostError when the lock was lost before, even if only the clock shows it; LockNotOwnedError when it was
   *   released
   */
  run<T>(body: (lease: MultiLease) => T | Promise<T>): Promise<T>;

  /**
   * Gives this share back. With the last share, the lock becomes free or goes to the next waiter. Further calls have no
   * effect.
   *
   * @throws LockLostError when the lease was lost (with `onLost: 'warn'`, the loss is only logged). An unreachable
   *   backend is not an error: the release is retried in the background, and the lock lapses with its lease.
   */
  release(): Promise<void>;

  /** As {@link release}. If the block threw as well, JavaScript wraps both errors in a SuppressedError. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * One successful acquisition of one lock, or of several at once. It proves that the code holds the lock for as long as
 * `held` is true.
 *
 * A lease is released once, and sends nothing after that. Whether the lock is still held is judged by this process's
 * clocks, more strictly than by the backend: the lease can end here a moment before others can take the lock, but never
 * after.
 *
 * ```ts
 * await using lease = await locks.acquire('import:nightly');
 * for (const file of files) {
 *   lease.assertHeld();
 *   await load(file, { signal: lease.signal, fencingToken: lease.fencingToken });
 * }
 * ```
 *
 * The lease of a multi-lock is held while all members are; the lease of a red lock while a majority is.
 *
 * @publicApi
 */
export interface Lease extends MultiLease {
  /**
   * A number that grows with each acquisition of this lock. Pass it to the protected resource. The resource should
   * reject a number lower than the highest it has seen, and accept an equal one, since a lease may write several times.
   * The number is above 10¹⁵: a database needs 64 bits for it (`bigint`).
   *
   * @throws LockError for several locks with different tokens: use {@link tokens}
   */
  readonly fencingToken: number;

  /** See {@link MultiLease.run}. */
  run<T>(body: (lease: Lease) => T | Promise<T>): Promise<T>;

  /**
   * Keeps the lock locked without a holder, for another process to take over: `locks.adopt(ticket)`. The lock gets
   * another owner, whose lease lasts for `for` and is not renewed, and a new fencing token; adopting it does so once
   * more. So nothing late that this process has sent about the lock affects it any more.
   *
   * The lease ends here: `held` is false from the call on, `signal` does not abort any more, and neither `release()`,
   * nor the end of the body that was given this lease, nor shutdown frees the lock. If nobody adopts it in time, it
   * becomes free.
   *
   * ```ts
   * const lease = await locks.acquire(`invoice:${id}`);
   * await queue.add('send', { id, ticket: await lease.detach({ for: '5m' }) });
   * ```
   *
   * Locks of type `reentrant`, `fenced` and `write` can be detached, on Redis and in memory, one name at a time and
   * while no re-entry shares them.
   *
   * @returns the ticket. It is a secret, since whoever has it can adopt the lock, and can be used once
   * @throws LockLostError when the lock was lost, or the backend has not confirmed the transfer before the lease ended;
   *   the lock is then released. LockNotOwnedError when the lease was released or detached before.
   *   LockConfigurationError, with the reason, for a lease that cannot be detached or a duration below 100 ms or above
   *   10 years; the lease is not affected
   * @see docs/detach-and-adopt.md
   */
  detach(options: DetachOptions): Promise<string>;
}

/** Options of {@link Lease.detach}. @publicApi */
export interface DetachOptions {
  /** How long the lock stays locked if nobody adopts it. */
  readonly for: Duration;
}
