import type { Subscription, Wake } from './lock-backend.js';

/**
 * Names one request that changes something, so that a repetition of it is answered alike and changes nothing again: a reply can
 * be lost after the command was executed.
 *
 * A client asks for the changes of one lane in one object one after the other: it sends the next one when it knows the answer of the
 * last. So the backend remembers the latest number of each lane with its answer, and takes a lower number for a copy that was long
 * under way.
 */
export interface RequestId {
  /** `<clientId>:<what>`; no other client has it. */
  readonly session: string;
  /** Grows with each request of the client. */
  readonly sequence: number;
  /** It was sent before, and that copy may still be under way: the answer is remembered whatever it is, so that the copy changes nothing. */
  readonly repeated?: boolean;
}

/** For so many milliseconds a request is remembered after it was executed. */
export const REQUEST_LIFETIME = 300_000;

export interface TakenPermits {
  /** How many of the groups, counted from the first, got all their permits. The others got none. */
  readonly served: number;
  /** Milliseconds until the earliest lease of a permit ends; −1 when none does. */
  readonly remaining: number;
}

export interface PermitCounts {
  readonly available: number;
  readonly acquired: number;
}

/** What has a channel of its own. Both kinds of semaphores share one. */
export type SynchronizerKind = 'semaphore' | 'latch';

/**
 * What semaphores and count-down latches ask of the place where they are kept. A `key` is the whole key, prefix included. What is not
 * there counts as zero. Permit ids are 32 lower-case hexadecimal digits, chosen by the caller.
 *
 * All methods may be called at any time, concurrently; promises reject with BackendError alone. Times are measured by the
 * backend's own clock. Whoever makes permits available, or ends a latch, wakes who waits.
 */
export interface SynchronizerBackend {
  // ── Permits that are only counted ────────────────────────────────────────────────────────────────────────────────────

  /** Takes the permits of as many groups, from the first on, as there are permits for. Gives how many groups that were. */
  takePermits(key: string, groups: readonly number[], request: RequestId): Promise<number>;

  /** Takes all that are available, and gives how many that were. */
  drainPermits(key: string, request: RequestId): Promise<number>;

  availablePermits(key: string): Promise<number>;

  /** As {@link addPermits}; false: there is no such semaphore, and none was made. */
  addPermitsIfExists(key: string, permits: number, request: RequestId): Promise<boolean>;

  // ── Permits of both kinds ────────────────────────────────────────────────────────────────────────────────────────────

  /** More permits are available. A negative number takes permits away, below zero if need be. */
  addPermits(key: string, permits: number, request: RequestId): Promise<void>;

  /** False: it was set already. */
  trySetPermits(key: string, permits: number, request: RequestId): Promise<boolean>;

  // ── Permits with an id and a lease ───────────────────────────────────────────────────────────────────────────────────

  /** As {@link takePermits}, under these ids. Those that were taken by an earlier copy of this request get a fresh lease. */
  takeLeasedPermits(
    key: string,
    groups: readonly (readonly string[])[],
    leaseTime: number,
    request: RequestId,
  ): Promise<TakenPermits>;

  /** Says of each id whether it was held, and is free now. */
  giveLeasedPermits(key: string, ids: readonly string[], request: RequestId): Promise<readonly boolean[]>;

  /** Sets the leases of these permits to `leaseTime` from now on. False: that permit is not held. */
  renewPermits(key: string, ids: readonly string[], leaseTime: number): Promise<readonly boolean[]>;

  /** Makes the sum of available and acquired permits `permits`. */
  setPermits(key: string, permits: number, request: RequestId): Promise<void>;

  countPermits(key: string): Promise<PermitCounts>;

  // ── Count-down latch ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** False: it has a count already. */
  trySetCount(key: string, count: number, request: RequestId): Promise<boolean>;

  /** Lowers the count by `steps`, to zero at the lowest. */
  countDown(key: string, steps: number, request: RequestId): Promise<void>;

  getCount(key: string): Promise<number>;

  /** False: there was no count. */
  deleteLatch(key: string, request: RequestId): Promise<boolean>;

  /** Listens for what wakes waiters of this object. Subscriptions of one channel share one. */
  subscribe(key: string, kind: SynchronizerKind, listener: (wake: Wake) => void): Subscription;
}
