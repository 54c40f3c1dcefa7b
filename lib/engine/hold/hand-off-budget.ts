import type { LeaseClock, Moment } from '../time/lease-clock.js';
import type { HeldLock, LockWaiter, TokenBlock } from './held-lock.js';

/**
 * How long a lock may be handed off inside one process before other processes get a turn, in milliseconds. See
 * docs/internals/decisions/hand-off-budget.md before you change it.
 */
const HAND_OFF_BUDGET = 20;
/**
 * The budget when only one caller is left. With the usual budget, the process would need another acquisition just for
 * that caller.
 */
const LAST_HAND_OFF_BUDGET = 25;
/**
 * The budget for a permit while this process lets other permits of the same lock go. One of them goes in each period of
 * the usual budget, so other processes get a turn as often as with a lock that one may hold. It is the longest time for
 * which an owner id is handed off, and the deadlock detector relies on it.
 */
export const PERMIT_HAND_OFF_BUDGET = 100;
/**
 * How many fencing tokens to reserve at first. Blocks are powers of two, because only acquisitions that reserve equally
 * many tokens can share a script call.
 */
const FIRST_BLOCK = 64;
/** Enough for a lock whose bodies take longer than the budget, because it is rarely handed off. */
const SMALLEST_BLOCK = 1;
/** On a fast machine, empty bodies need some 25,000 tokens within the budget. */
const LARGEST_BLOCK = 32_768;
/** After this many releases that were recalled for a new caller, tokens are reserved for further callers. */
const FOLLOWERS = 2;
/** Timers and sockets get a turn after this many hand-offs. */
const HAND_OFFS_PER_TURN = 256;

/**
 * Lock cohorting: while callers of this process wait for a lock, it stays in the process for a while, because a
 * hand-off inside the process costs no round trip. A budget of time and of fencing tokens limits how long it stays.
 *
 * @see D. Dice, V. J. Marathe, N. Shavit, Lock Cohorting: A General Technique for Designing NUMA Locks (PPoPP 2012)
 */
export class HandOffBudget {
  /** How many tokens to reserve while callers wait: enough for the budget at the pace that was measured last. */
  block = FIRST_BLOCK;
  private count = 0;
  /** How many locks in a row went to a caller that arrived before their release was sent. */
  private follows = 0;
  /** The permit that had to leave this process last, and when. */
  private left: HeldLock | undefined = undefined;
  private leftAt = Number.NEGATIVE_INFINITY;

  /**
   * Whether the lock has to leave this process.
   *
   * @param waiting the number of callers that wait in this process
   */
  isSpent(held: HeldLock, waiting: number, now: Moment): boolean {
    const { since, block, permits } = held;
    const elapsed = now.monotonic - since;
    if (block?.left !== 0) {
      if (elapsed < (waiting > 1 ? HAND_OFF_BUDGET : LAST_HAND_OFF_BUDGET)) return false;
      if (permits !== undefined && elapsed < PERMIT_HAND_OFF_BUDGET && this.anotherLeft(held, now)) return false;
    }
    if (permits !== undefined) {
      this.left = held;
      this.leftAt = now.monotonic;
    }
    if (block !== undefined)
      this.adapt(block, elapsed, permits === undefined ? HAND_OFF_BUDGET : PERMIT_HAND_OFF_BUDGET);
    return true;
  }

  /** Whether another permit left this process within the present period. */
  private anotherLeft(held: HeldLock, now: Moment): boolean {
    return this.left !== held && now.monotonic - this.leftAt < HAND_OFF_BUDGET;
  }

  /** Records that a caller arrived before the release was sent. */
  followed(): void {
    this.follows++;
  }

  /** Records that a release was answered before another caller arrived. */
  notFollowed(): void {
    this.follows = 0;
  }

  /** New callers keep arriving before the release is sent, so tokens are reserved although nobody waits yet. */
  get isFollowed(): boolean {
    return this.follows >= FOLLOWERS;
  }

  /** Whether timers and sockets have to get a turn before the next hand-off. */
  mustYieldToEventLoop(): boolean {
    this.count = (this.count + 1) % HAND_OFFS_PER_TURN;
    return this.count === 0;
  }

  /**
   * The block may grow to any size at once, but shrinks by half at most, because a single slow tenure does not mean
   * that the process is slow.
   */
  private adapt({ size, left }: TokenBlock, elapsed: number, budget: number): void {
    // The time at which the hand-offs began is known only to the millisecond.
    const needed = ((size - left) * budget) / Math.max(1, elapsed);
    const block = 2 ** Math.ceil(Math.log2(needed));
    this.block = Math.min(Math.max(block, this.block / 2, SMALLEST_BLOCK), LARGEST_BLOCK);
  }
}

/**
 * Whether a waiter may inherit the lock without asking the backend. Its lease must have the same terms as the present
 * one. The present lease must be certain to exist, and must last until the watchdog's next round.
 */
export function mayInherit(held: HeldLock, { terms }: LockWaiter, clock: LeaseClock, now: Moment): boolean {
  if (held.block === undefined || held.fixed || terms.fixed || held.leaseTime !== terms.leaseTime) return false;
  return held.settled && clock.age(held.confirmed, now) < held.leaseTime / 2;
}
