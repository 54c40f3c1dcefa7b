import type { Subscription, Wake } from './subscription.js';
import type { SemaphoreType, SynchronizerState } from './synchronizer-state.js';

/**
 * Identifies one request that changes something, so that a repetition gets the same answer and changes nothing. A
 * repetition is needed because a reply can be lost after the command was executed.
 *
 * Within a session, a client sends changes to an object one after another, each after the previous one was answered.
 * The backend therefore remembers the latest sequence number of each session with its answer, and ignores a lower
 * number as a late copy.
 *
 * @publicApi
 */
export interface RequestId {
  /** `<clientId>:<kind of request>`; no other client uses it. */
  readonly session: string;
  /** Higher for each request of the client. */
  readonly sequence: number;
  /**
   * The request was sent before, and that copy may still be under way. The answer is then remembered even if nothing
   * changed, so that the other copy changes nothing.
   */
  readonly repeated?: boolean;
}

/** How long a request is remembered after it was executed, in milliseconds. */
export const REQUEST_LIFETIME = 300_000;

/** @publicApi */
export interface TakenPermits {
  /** How many groups, counted from the first, got all their permits. The others got none. */
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
 * The kinds of objects, each with its own channel. Both types of semaphores are of one kind and share a channel.
 *
 * @publicApi
 */
export type SynchronizerKind = 'semaphore' | 'latch';

/**
 * Semaphores and count-down latches of a {@link LockBackend}. A `key` is the whole key, prefix included. A missing
 * object counts as zero. Permit ids are 32 lower-case hexadecimal digits, chosen by the caller.
 *
 * All methods may be called at any time, concurrently; promises reject with {@link BackendError} only. Times are
 * measured by the backend's own clock. A call that makes permits available, or opens a latch, wakes waiters.
 *
 * @publicApi
 */
export interface SynchronizerBackend {
  // ── Permits that are only counted ──────────────────────────────────────────────────────────────────────────────────

  /**
   * Each number in `groups` is what one caller needs. Serves the groups in order until there are too few permits for
   * the next. Resolves to the number of groups served; −1: none, because the semaphore does not exist.
   *
   * @param initial creates a missing semaphore with this many permits first
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
   * Like {@link addPermits}, but only if the semaphore exists. Resolves to false if it does not; none is created.
   *
   * @throws BackendError
   */
  addPermitsIfExists(key: string, permits: number, request: RequestId): Promise<boolean>;

  // ── Permits of both kinds ──────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Makes more permits available. A negative number takes permits away, below zero if necessary.
   *
   * @param type set when the total number of permits changes; undefined when taken permits are given back
   * @throws BackendError
   */
  addPermits(key: string, permits: number, request: RequestId, type?: SemaphoreType): Promise<void>;

  /**
   * Creates the semaphore with this many permits. Resolves to false if it already exists.
   *
   * @param type the type that {@link inspect} reports. Default: `semaphore`
   * @throws BackendError
   */
  trySetPermits(key: string, permits: number, request: RequestId, type?: SemaphoreType): Promise<boolean>;

  // ── Permits with an id and a lease ─────────────────────────────────────────────────────────────────────────────────

  /**
   * Like {@link takePermits}, under these ids. If an earlier copy of this request took permits, those that are still
   * held get a fresh lease.
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
   * Gives permits back. Resolves, for each id, to whether it was held before.
   *
   * @throws BackendError
   */
  giveLeasedPermits(key: string, ids: readonly string[], request: RequestId): Promise<readonly boolean[]>;

  /**
   * Makes the leases of these permits end `leaseTime` from now. Resolves to false for each permit that is not held.
   *
   * @throws BackendError
   */
  renewPermits(key: string, ids: readonly string[], leaseTime: number): Promise<readonly boolean[]>;

  /**
   * Sets the total of available and acquired permits to `permits`.
   *
   * @throws BackendError
   */
  setPermits(key: string, permits: number, request: RequestId): Promise<void>;

  /** @throws BackendError */
  countPermits(key: string): Promise<PermitCounts>;

  // ── Count-down latch ───────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Sets the count of an open latch. Resolves to false if it already has a count.
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
   * Removes the count, which opens the latch. Resolves to false if there was no count.
   *
   * @throws BackendError
   */
  deleteLatch(key: string, request: RequestId): Promise<boolean>;

  // ── Both ───────────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * The object's state, for people and tools that inspect it. Undefined: there is none. Changes nothing. Without this
   * method, the backend lists no semaphores and latches.
   *
   * @throws BackendError
   */
  inspect?(key: string): Promise<SynchronizerState | undefined>;

  /** Listens for messages that wake waiters of this object. Subscriptions to the same channel are shared. */
  subscribe(key: string, kind: SynchronizerKind, listener: (wake: Wake) => void): Subscription;
}
