import type { BlockingBackend } from './blocking-backend.js';
import type { FlightBackend } from './flight-backend.js';
import type { KEPT_FAR_BACK, LineBackend } from './line-backend.js';
import type { LockDirectory } from './lock-directory.js';
import type {
  AcquireAllReply,
  Acquired,
  AcquireReply,
  AcquireRequest,
  AdoptReply,
  AdoptRequest,
  ExpectedHolders,
  HeldType,
  LockState,
  OwnerRef,
  ReleaseReply,
  ReleaseRequest,
  Removal,
  RenewRequest,
  TransferRequest,
  WaiterRef,
} from './lock-requests.js';
import type { NodeWatch } from './node-outage.js';
import type { Subscription, Wake } from './subscription.js';
import type { SynchronizerBackend } from './synchronizer-backend.js';
import type { WaitBackend } from './wait-backend.js';

export * from './backend-error.js';
export type { BlockingBackend } from './blocking-backend.js';
export type * from './flight-backend.js';
export * from './line-backend.js';
export * from './lock-directory.js';
export * from './lock-requests.js';
export * from './node-outage.js';
export * from './subscription.js';

/** The reply to {@link LockBackend.ping}. @publicApi */
export interface BackendHealth {
  /** Whether messages about releases arrive. Undefined if they were not needed yet. */
  readonly listening: boolean | undefined;
}

/**
 * The port that a lock engine needs and a backend implements. Every implementation passes the suite in test/contract.
 *
 * - All methods may be called at any time, concurrently. Promises reject with {@link BackendError} only.
 * - An acquisition is idempotent: an owner that holds the lock already is renewed to `leaseTime` and gets a (new)
 *   token.
 * - Times are measured by the backend's own clock.
 * - A call that gets no answer within the backend's command time-out rejects with `outcome: 'unknown'`.
 * - A call that takes something (an acquisition, a transfer, a position in a queue, permits) is not executed after that
 *   time-out, even if it was delayed, because its caller has given up. See {@link BackendError.validUntil}.
 *
 * ```ts
 * const reply = await backend.acquire({
 *   key: 'lock:order:1', type: 'reentrant', owner: `${clientId}:1`,
 *   leaseTime: 30_000, reserve: 0, waiterTimeout: 0,
 * });
 * if (reply.acquired) console.log(reply.token);
 * ```
 *
 * @publicApi
 */
export interface LockBackend {
  /** For logs: `redis 127.0.0.1:6379/0`. It never contains a secret. */
  readonly description: string;

  /** The last error of the connection since it was last ready; undefined: none is known. It never contains a secret. */
  readonly connectionError?: Error | undefined;

  /** Semaphores and latches; undefined: this backend has none. */
  readonly synchronizers: SynchronizerBackend | undefined;

  /** Single flights and their results; undefined: this backend has none. */
  readonly flights?: FlightBackend | undefined;

  /** Lets processes wait in line; undefined: all of them are woken by a release, and ask. */
  readonly line?: LineBackend | undefined;
  /** False while releases of this process may not serve lines. Its new owners show that. */
  readonly mayServeLines?: boolean;

  /** Stores waits for the deadlock detection; undefined: no deadlocks are detected. */
  readonly waits?: WaitBackend | undefined;

  /**
   * Asks whether the backend answers.
   *
   * @throws BackendError when it does not
   */
  ping?(): Promise<BackendHealth>;

  /** Lists locks and clients; undefined: this backend cannot. */
  readonly directory?: LockDirectory | undefined;
  /** Lets callers wait in the backend; undefined: waiters listen for releases (see {@link subscribe}) and ask again. */
  readonly blocking?: BlockingBackend | undefined;

  /**
   * Why callers must wait until a release is confirmed, as the end of a sentence; undefined if `release: 'background'`
   * is possible.
   */
  readonly confirmsReleases?: string | undefined;

  /** Why this backend has no locks that several may hold (`permits`), as a sentence; undefined: it has them. */
  readonly permitsRefusal?: string | undefined;

  /** Reports which nodes answer, so that callers need not wait for an outage to end; undefined: this backend cannot. */
  readonly health?: NodeWatch | undefined;

  /**
   * Acquires a lock that is free or that this owner already holds.
   *
   * @throws BackendError
   */
  acquire(request: AcquireRequest): Promise<AcquireReply>;

  /** Whether {@link acquireAll} can acquire all these keys in one step. */
  canAcquireTogether(keys: readonly string[]): boolean;

  /**
   * Acquires all locks or none, in one step. Only for `reentrant`, `fenced`, `read` and `write` requests with the same
   * leaseTime, for keys that {@link canAcquireTogether} accepts. Ignores their `reserve` and `waiterTimeout`: no tokens
   * are reserved, and no waiter is registered.
   *
   * @throws BackendError
   */
  acquireAll(requests: readonly AcquireRequest[]): Promise<AcquireAllReply>;

  /**
   * Releases the lock of this owner and wakes waiters. The release of a fair lock wakes the head of its queue. If the
   * queue is empty, it wakes those who listen as `'reentrant'`.
   *
   * @throws BackendError
   */
  release(request: ReleaseRequest): Promise<ReleaseReply>;

  /**
   * Replaces one owner by another in one step, with a fresh lease; `undefined` when `from` did not hold the lock. If
   * the lease becomes shorter, waiters are woken, because they would sleep until the former lease ended.
   *
   * @throws BackendError
   */
  transfer(request: TransferRequest): Promise<Acquired | undefined>;

  /**
   * Like {@link transfer}, from the owner of a ticket, which only the ticket's secret identifies. If it is sent twice,
   * it transfers the lock only once, and does not shorten a lease that was extended in the meantime. Without this
   * method, locks cannot be detached.
   *
   * @throws BackendError
   */
  adopt?(request: AdoptRequest): Promise<AdoptReply>;

  /** Why locks cannot be detached, for errors, if {@link adopt} is missing. */
  readonly adoptRefusal?: string;

  /**
   * Sets the lease of this owner to `leaseTime` from now on. Resolves to false when this owner does not hold the lock.
   * If the lock then ends earlier than before, waiters are woken as by a release, because they would sleep until its
   * former end. Only waiters for a flight are not, because its lease never becomes shorter.
   *
   * @throws BackendError
   */
  renew(request: RenewRequest): Promise<boolean>;

  /**
   * Keeps these waiters registered (see {@link AcquireRequest.waiterTimeout}) for another `waiterTimeout` ms. Resolves
   * to false for each waiter that was no longer registered. A place in line that was granted the lock is none.
   *
   * @param keptLonger called if they are all kept for {@link KEPT_FAR_BACK} times as long, because they are far back in
   *   their lines. Optional for both sides
   * @throws BackendError
   */
  refreshWaiters(
    waiters: readonly WaiterRef[],
    waiterTimeout: number,
    keptLonger?: () => void,
  ): Promise<readonly boolean[]>;

  /**
   * Removes a waiter, and wakes the next one if this waiter had been woken. Does nothing when the waiter is not
   * registered.
   *
   * @throws BackendError
   */
  removeWaiter(waiter: OwnerRef): Promise<void>;

  /**
   * Frees a lock of any type, whoever holds it, wakes waiters, and notifies the clients of the removed owners. Resolves
   * to the removed owners, each once, or to an empty list if the lock was free.
   *
   * With `expected`, only the listed owners are removed. They are compared and removed in one step, so an owner that
   * acquired the lock meanwhile keeps it. An empty list removes nobody. An owner that holds the lock as a writer and as
   * a reader is removed from both. Unlisted readers keep their lock, and waiters are woken only when no owner is left.
   * Resolves to the removed owners.
   *
   * @throws BackendError
   */
  forceRelease(key: string, expected?: ExpectedHolders): Promise<readonly string[]>;

  /** @throws BackendError */
  inspect(key: string): Promise<LockState>;

  /**
   * Listens for releases of this lock. All subscriptions share one connection; those of one channel share one
   * subscription. For a fair lock, `clientId` names the owners (`<clientId>:*`) whose messages are delivered.
   */
  subscribe(key: string, type: HeldType, clientId: string, listener: (wake: Wake) => void): Subscription;

  /**
   * Listens for forced releases that removed owners of this client, whoever requested them. Anybody can send such a
   * message, so verify it before you rely on it, unless it has a {@link Removal.reason}. Without this method, forced
   * releases are not announced.
   *
   * @param missed called when the connection was interrupted and is back: messages may have been lost, and locks with the
   *   backend's data
   */
  listenToClient?(clientId: string, listener: (removal: Removal) => void, missed?: () => void): Subscription;

  /**
   * From now on, this backend keeps the process alive until it is closed, as open connections do. Called when the
   * application has started. Until then, only unanswered requests may keep the process alive, because nobody closes the
   * backend of an application that could not start.
   */
  keepAlive?(): void;

  /** Closes the connections that this backend opened. Outstanding calls reject. */
  close(): Promise<void>;
}
