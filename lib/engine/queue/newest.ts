import type { AcquireReply, Busy, NewestCall } from '../../backends/lock-backend.js';
import type { Attempt, Outcome } from '../ask/attempt.js';
import type { HeldLock, LockWaiter } from '../hold/held-lock.js';
import type { Turn } from './turn.js';
import type { AskingQueue, WayOfAsking } from './way-of-asking.js';

const FIRST_CALL: NewestCall = { superseded: 0, order: undefined };

/** Only the newest caller waits, in all processes: each takes the place of the one before. */
export const newest: WayOfAsking = {
  servesFirstOnly: false,
  /** How many calls it has superseded is only in an answer. */
  believesGrants: false,
  /** Otherwise callers of other processes could not supersede the one that waits here. */
  asksBeside: () => true,
  arrange: supersede,
  askNext,
  reserve: (queue) => queue.reserveBehind(1),
  complete: (attempt: Attempt, waiter: LockWaiter) => {
    attempt.newest = callOf(waiter);
  },
  enterLine,
  keepsPlace: () => false,
  granted: (_queue, waiter: LockWaiter, held: HeldLock, reply?: AcquireReply) => {
    held.superseded = (reply?.newest ?? callOf(waiter)).superseded;
  },
  notGranted: (outcome: Outcome, waiter: LockWaiter) => {
    if (outcome.state === 'busy' && outcome.reply.newest !== undefined) waiter.newest = outcome.reply.newest;
  },
  refusal: ({ callers: line }: AskingQueue, waiter: LockWaiter, reply: Busy) =>
    reply.superseded ? line.superseded(waiter) : undefined,
  /** Only the backend knows whether the caller is still the newest. */
  passes: () => false,
  leavesToOthers: () => true,
};

/** Lets the newest caller take the place of those that wait before it, unless their request is under way. */
function supersede({ waiting, callers: line, turn, attempts }: AskingQueue): void {
  const { first, last } = waiting;
  if (last === undefined || first === last) return;
  for (const waiter of waiting) {
    if (waiter === last || waiter.attempt !== undefined) continue;
    // What has a place is counted by the backend when the place is taken over.
    const { superseded, order } = callOf(waiter);
    const others = order === undefined ? superseded + 1 : 0;
    last.newest = { superseded: callOf(last).superseded + others, order: undefined };
    waiting.remove(waiter);
    waiter.refuse(line.superseded(waiter));
  }
  // During an outage, it waits for the next try of the one before.
  if (attempts === 0 && line.failure === undefined) turn.stopResting();
}

/** Until the request under way is answered, nobody knows whether its caller has the lock. */
function askNext(queue: AskingQueue, first: LockWaiter): void {
  if (queue.attempts > 0) return;
  const { turn } = queue;
  const { placeOwner } = turn;
  queue.ask(first);
  // Its position and its count were taken over.
  if (placeOwner !== undefined && !turn.isPlace(placeOwner)) turn.unregister(placeOwner);
}

/**
 * The order of newest callers is that in which they first ask. Who is granted the lock before it listens learns that when
 * it listens, because it then asks again.
 */
function enterLine(turn: Turn, waiter: LockWaiter, isAlone: boolean): void {
  if (turn.hasLine() && !turn.listensOutside) turn.place.begin(waiter);
  else turn.enterLine(waiter, isAlone);
}

function callOf(waiter: LockWaiter): NewestCall {
  return waiter.newest ?? FIRST_CALL;
}
