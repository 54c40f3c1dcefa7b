import { isTransferable } from '../../backends/lock-backend.js';
import type { HeldLock } from '../lease/held-lock.js';
import type { LeaseClock, Moment } from '../lease/lease-clock.js';
import type { Waiter } from '../waiting/waiter.js';

/** How long one acquisition may be handed on inside a process before other processes get their turn, in ms. */
const HAND_OFF_BUDGET = 20;
/** The same, when a single caller is left: it goes along, where the process would have to come back for it alone. */
const LAST_HAND_OFF_BUDGET = 25;
/** Fencing tokens to reserve at first: blocks are powers of two, so that acquisitions of different locks ask for the same. */
const FIRST_BLOCK = 64;
/** A lock whose bodies take longer than a tenure is handed on once in a while. */
const SMALLEST_BLOCK = 1;
/** On a fast machine, bodies that do nothing need some 25,000 in a tenure. */
const LARGEST_BLOCK = 32_768;
/** So many hand-offs run before timers and sockets get their turn. */
const HAND_OFFS_PER_TURN = 256;

/** Fencing tokens that were reserved with an acquisition, for those to whom it will be handed on. */
export class TokenBlock {
  left: number;

  constructor(readonly size: number) {
    this.left = size;
  }

  static of(reserved: number): TokenBlock | undefined {
    return reserved > 0 ? new TokenBlock(reserved) : undefined;
  }
}

/**
 * Where a lock goes whose last share was given back while a waiter of this process queues.
 * `local`: to that waiter, without the backend. `transfer`: to it, by one command. `release`: out of this process.
 */
export type Route = 'local' | 'transfer' | 'release';

/**
 * Lock cohorting: a lock that is wanted here stays here for a while, since a hand-over inside the process costs no round trip;
 * a budget of time and of fencing tokens makes sure that it leaves.
 *
 * @see D. Dice, V. J. Marathe, N. Shavit, Lock Cohorting: A General Technique for Designing NUMA Locks (PPoPP 2012)
 */
export class HandOff {
  /** How many tokens to reserve with an acquisition behind which others wait: as many as fill a tenure at the last one's pace. */
  block = FIRST_BLOCK;
  private count = 0;

  /** @param waiting how many callers wait in this process */
  route(held: HeldLock, next: Waiter, waiting: number, clock: LeaseClock, now: Moment): Route {
    const { since, block } = held;
    const elapsed = now.monotonic - since;
    if (block?.left === 0 || elapsed >= (waiting > 1 ? HAND_OFF_BUDGET : LAST_HAND_OFF_BUDGET)) {
      if (block !== undefined) this.learn(block, elapsed);
      return 'release';
    }
    if (next.triesOnce || !isTransferable(held.type) || next.terms.type !== held.type) return 'release';
    return block !== undefined && sameLease(held, next) && fresh(held, clock, now) ? 'local' : 'transfer';
  }

  /** Grows at once, and shrinks by halves: who was stopped for a moment is not slow. */
  private learn({ size, left }: TokenBlock, elapsed: number): void {
    // The start of a tenure is known to a millisecond.
    const needed = ((size - left) * HAND_OFF_BUDGET) / Math.max(1, elapsed);
    const block = 2 ** Math.ceil(Math.log2(needed));
    this.block = Math.min(Math.max(block, this.block / 2, SMALLEST_BLOCK), LARGEST_BLOCK);
  }

  /** Whether the next hand-off has to let the event loop go round first. */
  shouldYieldToEventLoop(): boolean {
    this.count = (this.count + 1) % HAND_OFFS_PER_TURN;
    return this.count === 0;
  }
}

function sameLease(held: HeldLock, next: Waiter): boolean {
  return !held.fixed && !next.terms.fixed && held.leaseTime === next.terms.leaseTime;
}

/** What a successor inherits must be known to be there, and must last until the watchdog's next round. */
function fresh(held: HeldLock, clock: LeaseClock, now: Moment): boolean {
  return held.unsettled === 0 && clock.age(held.confirmed, now) < held.leaseTime / 2;
}
