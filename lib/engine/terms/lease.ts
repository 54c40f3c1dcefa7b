import type { Duration } from './duration.js';

/**
 * The lease of several locks. It has no `fencingToken`, because each lock has its own token (see {@link tokens}).
 *
 * @publicApi
 */
export interface MultiLease {
  /** The lock's name; several names are joined by `, `. */
  readonly name: string;

  /** The names of all locks, sorted. */
  readonly names: readonly string[];

  /**
   * The owner id in Redis: `<clientId>:<n>`. After a hand-off within the process, and on re-entry, the previous owner
   * id is kept. For several locks, the id of the first: see {@link owners}.
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
   * it. Reading this property checks the clock, so `lease.signal.aborted` is right even if the event loop has been
   * blocked until now. A signal that was read before cannot be aborted until the event loop continues.
   */
  readonly signal: AbortSignal;

  /** Whether the lock is certainly held at this moment. */
  readonly held: boolean;

  /** Milliseconds for which the lock is certainly held without another renewal; 0 when it is not held. */
  remainingTime(): number;

  /**
   * Does nothing if the lock is held, and throws otherwise.
   *
   * @throws LockLostError when it was lost, LockNotOwnedError when it was released
   */
  assertHeld(): void;

  /**
   * Makes the lease end `duration` from now. If the watchdog renews the lease, it continues to do so, and the lease
   * does not become shorter than a renewal would make it.
   *
   * @throws LockLostError when the lock is lost, including when this call discovers the loss; LockNotOwnedError when it
   *   was released, LockUnavailableError when the backend does not answer, LockConfigurationError for a duration below
   *   100 ms or above 10 years
   */
  extend(duration: Duration): Promise<void>;

  /**
   * Runs `body` in a scope of this lease. In it, acquiring the same names is a re-entry, and `currentLease()` returns
   * this lease. Several such scopes that acquire the same name are served one after another. The lease is not released
   * when `body` ends.
   *
   * @throws LockLostError when the lock was already lost, even if only the local clock shows that the lease expired;
   *   LockNotOwnedError when it was released
   */
  run<T>(body: (lease: MultiLease) => T | Promise<T>): Promise<T>;

  /**
   * Releases this lease. When the last lease that shares the lock is released, the lock becomes free or goes to the
   * next waiter. Further calls have no effect.
   *
   * @throws LockLostError when the lease was lost (with `onLost: 'warn'`, the loss is only logged). An unreachable
   *   backend is not an error: the release is retried in the background, and the lock lapses with its lease.
   */
  release(): Promise<void>;

  /** Like {@link release}. If the block threw as well, JavaScript wraps both errors in a SuppressedError. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * One successful acquisition of one lock, or of several at once. It proves that the code holds the lock for as long as
 * `held` is true.
 *
 * A lease is released only once. After that, it sends no commands to the backend. This process judges by its own
 * clocks whether the lock is still held, and it is stricter than the backend. The lease may end slightly before others
 * can take the lock, but never later.
 *
 * ```ts
 * await using lease = await locks.acquire('import:nightly');
 * for (const file of files) {
 *   lease.assertHeld();
 *   await load(file, { signal: lease.signal, fencingToken: lease.fencingToken });
 * }
 * ```
 *
 * The lease of a multi-lock is held while all members are held, and that of a Redlock while a majority is held.
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

  /** How many calls this one has superseded, so that it stands for them as well: see `LockOptions.newest`. */
  readonly superseded: number;

  /** See {@link MultiLease.run}. */
  run<T>(body: (lease: Lease) => T | Promise<T>): Promise<T>;

  /**
   * Keeps the lock locked after this holder leaves, so that another process can take it over with
   * `locks.adopt(ticket)`. The lock gets a new owner and a new fencing token. The new lease lasts for the time in `for`
   * and is not renewed. Adoption changes the owner and the token again. Late commands from this process therefore no
   * longer affect the lock.
   *
   * This lease ends with the call: `held` becomes false, and `signal` no longer aborts, unless this call finds that the
   * lock was lost. The lock is not freed by `release()`, by the end of the body, or by shutdown. If nobody adopts it in
   * time, it becomes free.
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
   * @throws LockLostError when the lock was lost, or when the backend did not confirm the transfer before the lease
   *   ended; in that case the lock is released. LockNotOwnedError when the lease was released or detached before.
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
