import { isTransferable } from '../../backends/lock-backend.js';
import type { HeldLock, LockWaiter } from '../lease/held-lock.js';
import type { LeaseClock, Moment } from '../lease/lease-clock.js';
import type { TokenBlock } from '../lease/token-block.js';

/**
 * How long a lock may be handed off inside one process before other processes get their turn, in ms. Much less than a wait lasts before it is
 * written down (see NestedWaits): a successor under the same owner would be taken for the caller that waits.
 */
const HAND_OFF_BUDGET = 20;
/** The same when one caller is left: it is served as well, where the process would otherwise have to come back for it alone. */
const LAST_HAND_OFF_BUDGET = 25;
/** Fencing tokens to reserve at first. Blocks are powers of two, so that acquisitions of different locks ask for the same number. */
const FIRST_BLOCK = 64;
/** Enough for a lock whose bodies take longer than the budget: it is handed off only once in a while. */
const SMALLEST_BLOCK = 1;
/** On a fast machine, bodies that do nothing need some 25,000 tokens within the budget. */
const LARGEST_BLOCK = 32_768;
/** After so many hand-offs, timers and sockets get a turn. */
const HAND_OFFS_PER_TURN = 256;

/**
 * Where a lock goes whose last share was given back while a caller of this process waits. `local`: to that waiter, without the backend.
 * `transfer`: to that waiter, by one command. `release`: out of this process.
 */
export type Route = 'local' | 'transfer' | 'release';

/**
 * Lock cohorting: a lock that is wanted in this process stays here for a while, because a hand-off inside the process costs no round trip. A
 * budget of time and of fencing tokens makes sure that it leaves.
 *
 * @see D. Dice, V. J. Marathe, N. Shavit, Lock Cohorting: A General Technique for Designing NUMA Locks (PPoPP 2012)
 */
export class HandOff {
  /** How many tokens to reserve with an acquisition behind which callers wait: enough for the budget at the pace of the last one. */
  block = FIRST_BLOCK;
  private count = 0;

  /** @param waiting how many callers wait in this process */
  route(held: HeldLock, next: LockWaiter, waiting: number, clock: LeaseClock, now: Moment): Route {
    const { since, block } = held;
    const elapsed = now.monotonic - since;
    if (block?.left === 0 || elapsed >= (waiting > 1 ? HAND_OFF_BUDGET : LAST_HAND_OFF_BUDGET)) {
      if (block !== undefined) this.adapt(block, elapsed);
      return 'release';
    }
    if (next.triesOnce || !isTransferable(held.type) || next.terms.type !== held.type) return 'release';
    return block !== undefined && haveSameLease(held, next) && isFresh(held, clock, now) ? 'local' : 'transfer';
  }

  /** Whether timers and sockets have to get a turn before the next hand-off. */
  shouldYieldToEventLoop(): boolean {
    this.count = (this.count + 1) % HAND_OFFS_PER_TURN;
    return this.count === 0;
  }

  /** Grows the block at once, and halves it at most: a process that was stopped for a moment is not slow. */
  private adapt({ size, left }: TokenBlock, elapsed: number): void {
    // The start of the hand-offs is known to a millisecond.
    const needed = ((size - left) * HAND_OFF_BUDGET) / Math.max(1, elapsed);
    const block = 2 ** Math.ceil(Math.log2(needed));
    this.block = Math.min(Math.max(block, this.block / 2, SMALLEST_BLOCK), LARGEST_BLOCK);
  }
}

function haveSameLease(held: HeldLock, next: LockWaiter): boolean {
  return !held.fixed && !next.terms.fixed && held.leaseTime === next.terms.leaseTime;
}

/** The lease that a successor inherits must be known to exist, and must last until the watchdog's next round. */
function isFresh(held: HeldLock, clock: LeaseClock, now: Moment): boolean {
  return held.settled && clock.age(held.confirmed, now) < held.leaseTime / 2;
}
