import type { Subscription, Wake } from './subscription.js';
import type { SemaphoreType, SynchronizerState } from './synchronizer-state.js';

/**
 * Identifies one request that changes something, so that a repetition gets the same answer and changes nothing: a reply
 * can be lost after the command was executed.
 *
 * A client sends the changes of one session to one object one after the other: the next one only when the last one was
 * answered. So the backend remembers the latest sequence number of each session with its answer, and ignores a lower
 * number as a late copy.
 *
 * @publicApi
 */
export interface RequestId {
  /** `<clientId>:<kind of request>`; no other client uses it. */
  readonly session: string;
  /** Grows with each request of the client. */
  readonly sequence: number;
  /**
   * The request was sent before, and that copy may still be under way: the answer is remembered even if nothing
   * changed, so that the copy changes nothing.
   */
  readonly repeated?: boolean;
}

/** How long a request is remembered after it was executed, in milliseconds. */
export const REQUEST_LIFETIME = 300_000;

/** @publicApi */
export interface TakenPermits {
  /** How many of the groups, counted from the first, got all their permits. The others got none. */
  readonly served: number;
  /** Milliseconds until the earliest lease of a permit ends; −1 when no permit has a lease. */
  readonly remaining: number;
  /** No group was served because the semaphore does not exist. */
  readonly missing?: boolean;
}

/** @publicApi */
export interface PermitCounts {
  readonly available: number;
  readonly acquired: number;
}

/**
 * Each kind has its own channel. Both kinds of semaphores share one.
 *
 * @publicApi
 */
export type SynchronizerKind = 'semaphore' | 'latch';

/**
 * Semaphores and count-down latches of a {@link LockBackend}. A `key` is the whole key, prefix included. An object that
 * does not exist counts as zero. Permit ids are 32 lower-case hexadecimal digits, chosen by the caller.
 *
 * All methods may be called at any time, concurrently; promises reject with {@link BackendError} only. Times are
 * measured by the backend's own clock. A call that makes permits available, or opens a latch, wakes waiters.
 *
 * @publicApi
 */
export interface SynchronizerBackend {
  // ── Permits that are only counted ────────────────────────────────────────────────────────────────────────────────────

  /**
   * Takes the permits of as many groups, from the first on, as there are permits for. Resolves to the number of groups
   * served; −1: none, because the semaphore does not exist.
   *
   * @param initial a semaphore that does not exist is first created with this many permits
   * @throws BackendError
   */
  takePermits(key: string, groups: readonly number[], request: RequestId, initial?: number): Promise<number>;

  /**
   * Takes all available permits. Resolves to how many there were.
   *
   * @throws BackendError
   */
  drainPermits(key: string, request: RequestId): Promise<number>;

  /** @throws BackendError */
  availablePermits(key: string): Promise<number>;

  /**
   * As {@link addPermits}, but only if the semaphore exists. False: it does not, and none was created.
   *
   * @throws BackendError
   */
  addPermitsIfExists(key: string, permits: number, request: RequestId): Promise<boolean>;

  // ── Permits of both kinds ────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Makes more permits available. A negative number takes permits away, below zero if need be.
   *
   * @param type given where the number of permits changes, and undefined where permits come back
   * @throws BackendError
   */
  addPermits(key: string, permits: number, request: RequestId, type?: SemaphoreType): Promise<void>;

  /**
   * Creates the semaphore with this many permits. False: it exists already.
   *
   * @param type what {@link inspect} is to answer. Default: `semaphore`
   * @throws BackendError
   */
  trySetPermits(key: string, permits: number, request: RequestId, type?: SemaphoreType): Promise<boolean>;

  // ── Permits with an id and a lease ───────────────────────────────────────────────────────────────────────────────────

  /**
   * As {@link takePermits}, under these ids. Permits that an earlier copy of this request took get a fresh lease.
   *
   * @throws BackendError
   */
  takeLeasedPermits(
    key: string,
    groups: readonly (readonly string[])[],
    leaseTime: number,
    request: RequestId,
    initial?: number,
  ): Promise<TakenPermits>;

  /**
   * Gives permits back. Says of each id whether it was held, and is free now.
   *
   * @throws BackendError
   */
  giveLeasedPermits(key: string, ids: readonly string[], request: RequestId): Promise<readonly boolean[]>;

  /**
   * Sets the leases of these permits to `leaseTime` from now on. False: that permit is not held.
   *
   * @throws BackendError
   */
  renewPermits(key: string, ids: readonly string[], leaseTime: number): Promise<readonly boolean[]>;

  /**
   * Makes the sum of available and acquired permits `permits`.
   *
   * @throws BackendError
   */
  setPermits(key: string, permits: number, request: RequestId): Promise<void>;

  /** @throws BackendError */
  countPermits(key: string): Promise<PermitCounts>;

  // ── Count-down latch ─────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Sets the count of an open latch. False: it has a count already.
   *
   * @throws BackendError
   */
  trySetCount(key: string, count: number, request: RequestId): Promise<boolean>;

  /**
   * Lowers the count by `steps`, but not below zero.
   *
   * @throws BackendError
   */
  countDown(key: string, steps: number, request: RequestId): Promise<void>;

  /** @throws BackendError */
  getCount(key: string): Promise<number>;

  /**
   * Removes the count, which opens the latch. False: there was no count.
   *
   * @throws BackendError
   */
  deleteLatch(key: string, request: RequestId): Promise<boolean>;

  // ── Both ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * What is known of the object, for people who look at it. Undefined: there is none. Nothing changes. A backend
   * without this method shows no semaphores and latches.
   *
   * @throws BackendError
   */
  inspect?(key: string): Promise<SynchronizerState | undefined>;

  /** Listens for what wakes waiters of this object. Subscriptions of one channel share one. */
  subscribe(key: string, kind: SynchronizerKind, listener: (wake: Wake) => void): Subscription;
}
