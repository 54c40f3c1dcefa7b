import type { AcquireReply, Busy, HeldType } from '../../backends/lock-backend.js';
import type { Attempt, Outcome } from '../ask/attempt.js';
import type { LinkedQueue } from '../collections/linked-queue.js';
import type { HeldLock, LockWaiter } from '../hold/held-lock.js';
import type { Tenure } from '../hold/tenure.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import type { Callers } from './callers.js';
import type { Turn } from './turn.js';

/** What a way of asking knows of the queue that asks. */
export interface AskingQueue {
  readonly callers: Callers;
  readonly waiting: LinkedQueue<LockWaiter>;
  readonly tenure: Tenure;
  readonly turn: Turn;
  /** The number of unanswered acquisitions. */
  readonly attempts: number;
  /** Sends the acquisition of a waiter. */
  ask(waiter: LockWaiter): void;
  /** Like {@link ask}, for a waiter beside which others ask who need no tokens. */
  askBeside(waiter: LockWaiter): void;
  /** How many tokens to reserve for callers behind these many waiters. */
  reserveBehind(waiters: number): number;
}

/**
 * How the callers of one process ask for a lock: all that is different for each kind of lock. A `LockQueue` asks these
 * questions, and does what is the same for all kinds. Questions that most kinds need not answer are optional.
 */
export interface WayOfAsking {
  // ── Who asks next? ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** Whether nobody but the first waiter is ever served, so that a caller that arrives behind it changes nothing. */
  readonly servesFirstOnly: boolean;
  /** Whether somebody who wants the lock on these terms may ask although others hold it here. */
  asksBeside(terms: Pick<AcquisitionTerms, 'type' | 'permits'>, tenure: Tenure): boolean;
  /** Whether somebody may ask although a release of this process is unanswered. */
  readonly asksBehindReleases?: boolean;
  /** Called before anybody asks, in each state of the queue. */
  arrange?(queue: AskingQueue): void;
  /** Sends the requests that may be sent now. The first waiter may ask. */
  askNext(queue: AskingQueue, first: LockWaiter): void;
  /** Called when these waiters have left. */
  left?(waiters: readonly LockWaiter[]): void;

  // ── With what? ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** How many tokens a request of this type reserves for hand-offs. */
  reserve(queue: AskingQueue, type: HeldType): number;
  /** Adds to a request what its terms do not say. */
  complete?(attempt: Attempt, waiter: LockWaiter): void;

  // ── May it enter the line? ─────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Lets the next request of this waiter make a place in the line, or keep it, if it may.
   *
   * @param isAlone whether no other request is under way
   */
  enterLine(turn: Turn, waiter: LockWaiter, isAlone: boolean): void;
  /** Whether a message may grant the lock to the place. Otherwise the process asks when it is told. */
  readonly believesGrants: boolean;
  /** Whether the place is kept although this owner, which has not got it, holds the lock here. */
  keepsPlace(held: HeldLock): boolean;
  /** Whether only a request under the place may use its owner id, because others hold the lock here meanwhile. */
  readonly reservesPlace?: boolean;

  // ── What follows from an answer? ───────────────────────────────────────────────────────────────────────────────────

  /** Called when a waiter was granted the lock, before it is held. @param reply undefined: by a message */
  granted?(queue: AskingQueue, waiter: LockWaiter, held: HeldLock, reply?: AcquireReply): void;
  /** Called when a request has ended without the lock. */
  notGranted?(outcome: Outcome, waiter: LockWaiter): void;
  /** The error for a waiter that must not wait after this answer. */
  refusal?(queue: AskingQueue, waiter: LockWaiter, reply: Busy): Error | undefined;
  /** Whether a waiter of this process may inherit the lock. Otherwise it leaves the process. */
  passes(held: HeldLock, next: LockWaiter, tenure: Tenure): boolean;
  /** Whether others that heard of its release get the lock before this process asks. */
  leavesToOthers(held: HeldLock): boolean;
}
