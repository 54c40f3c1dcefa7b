import type { HeldType } from './lock-requests.js';
import type { Grant, Subscription, Wake } from './subscription.js';

/**
 * The shortest and the longest lease with which a place in line is granted the lock, in milliseconds. A process that wants
 * another one asks for it under the owner of the place.
 */
export const SHORTEST_GRANT = 1_000;
export const LONGEST_GRANT = 3_600_000;

/**
 * For how many milliseconds a release leaves the lock to clients outside its line, or to the places that it has notified,
 * before others ask for it. A thread of Redisson asks within 2 ms, if its machine is not busy.
 */
export const HEAD_START = 10;

/** A place behind this many others is far back. */
export const FAR_BACK = 64;

/**
 * A place far back is kept this many times as long as others, so that it need not be refreshed as often. Until its turn
 * comes, those in front notice if the lock is free.
 */
export const KEPT_FAR_BACK = 4;

export type TypeWithLine = Exclude<HeldType, 'fair' | 'flight'>;

/**
 * Whether processes that want locks of this type wait in line. Fair waiters have a queue of their own, and all callers of
 * a single flight are woken by its result.
 */
export function hasLine(type: HeldType): type is TypeWithLine {
  return type !== 'fair' && type !== 'flight';
}

/**
 * The lines of processes that wait for locks of the types that {@link hasLine} names. An acquisition of such a lock with
 * a `waiterTimeout` enters the line if the lock is busy, or if another place is first: it makes a place for its owner, or
 * keeps the one that it has. A place lapses after `waiterTimeout`, or {@link KEPT_FAR_BACK} times that if it is far back,
 * unless `refreshWaiters` keeps it for as long again, and `removeWaiter` ends it.
 *
 * A release grants the lock to the first place whose client listens, with the `grantLease` of its last acquisition, and
 * tells that client. So do `refreshWaiters` and an entering acquisition if they find the lock free, because whoever was told
 * of it may have died, and `removeWaiter` of a place that was granted the lock. A place whose last request is so old that
 * it owes a refresh is passed over, and so is one that nobody listens for. Where clients listen that stand in no line (see
 * `LockBackend.subscribe`), every second release only frees the lock, and tells both them and the first place.
 *
 * At most one place of a line belongs to a `NewestCall`. A request of another such call takes it over, together with its
 * position and the number of calls that it stands for, and the client of the former place is told. When that client asks
 * again, it learns that its call was superseded. A place that was granted the lock before is not taken over.
 *
 * A place of a lock that several may hold notes the `permits` of its request. While there is room, such places are granted
 * permits one after the other, in their order. Places that want the whole lock do not keep them from it.
 *
 * Readers and writers are only told, and all readers up to the first other place at once, and so is the place behind them.
 * They have {@link HEAD_START} milliseconds to ask for the free lock. Then any place may have it. As long as somebody who
 * would not read is in the line, later readers do not join those who read.
 *
 * @publicApi
 */
export interface LineBackend {
  /**
   * Listens for what concerns this client's place in the line of this lock: it was granted the lock, or is first, or the
   * holder's lease has become shorter. In each case an acquisition under the owner of the place tells which.
   */
  listen(key: string, clientId: string, listener: (wake: Wake) => void): Subscription;

  /** Notes that a message has granted a lock to this process, which begins without asking. */
  begun(grant: Grant): void;
}
