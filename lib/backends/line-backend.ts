import type { HeldType, RenewRequest } from './lock-requests.js';
import type { Grant, Subscription, Wake } from './subscription.js';

/**
 * For how many milliseconds a release grants the lock to the first place of the line. Its process then acquires the lock
 * with its full lease, under the same owner.
 */
export const CLAIM = 1_000;

/**
 * For how many milliseconds a release leaves the lock to those who wait outside its line, before the first place asks
 * for it. A thread of Redisson asks within 2 ms, if its machine is not busy.
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
 * A release grants the lock to the first place, for {@link CLAIM} milliseconds, and tells its client. So do
 * `refreshWaiters` and an entering acquisition if they find the lock free, because whoever was granted it may have died,
 * and `removeWaiter` of a place that was granted the lock. Where clients listen that stand in no line (see
 * `LockBackend.subscribe`), every second release only frees the lock, and tells both them and the first place.
 *
 * At most one place of a line belongs to a `NewestCall`. A request of another such call takes it over, together with its
 * position and the number of calls that it stands for, and the client of the former place is told. When that client asks
 * again, it learns that its call was superseded. A place that was granted the lock before is not taken over.
 *
 * A place of a lock that several may hold notes the `permits` of its request. While there is room, such places are granted
 * permits one after the other, in their order.
 *
 * Readers and writers are only told, and all readers up to the first other place at once. The lock is free until they
 * ask, but nobody enters the line before them, and they have {@link CLAIM} milliseconds for it. As long as somebody who
 * would not read is in the line, later readers wait behind him.
 *
 * @publicApi
 */
export interface LineBackend {
  /**
   * Listens for what concerns this client's place in the line of this lock: it was granted the lock, or is first, or the
   * holder's lease has become shorter. In each case an acquisition under the owner of the place tells which.
   */
  listen(key: string, clientId: string, listener: (wake: Wake) => void): Subscription;

  /**
   * Asks for the full lease of a lock that was granted to this owner, and never acquires it. Resolves to false if the
   * owner does not hold the lock any more.
   *
   * @param request its lease time is at least {@link CLAIM}
   * @param sent called when the request has left this process, or was answered with true, and perhaps twice. From then
   *   on, the lock will have its full lease even if this process blocks its event loop for longer than the claim
   * @throws BackendError when the outcome is unknown
   */
  accept(request: RenewRequest, grant: Grant, sent: () => void): Promise<boolean>;
}
