import type { HeldType } from '../../backends/lock-backend.js';
import type { Outcome } from '../ask/attempt.js';
import type { HeldLock, LockWaiter } from '../hold/held-lock.js';
import type { Tenure } from '../hold/tenure.js';
import type { Turn } from './turn.js';
import type { AskingQueue, WayOfAsking } from './way-of-asking.js';

/** Readers and writers. The readers in front ask side by side, and hold the lock together. A writer asks alone. */
export class Readers implements WayOfAsking {
  readonly servesFirstOnly = false;
  /** Readers and writers are only told that they may ask. */
  readonly believesGrants = false;
  /**
   * A reader that asks, as do all waiters in front of it. So nobody visits them again when another reader arrives, or one
   * of them is served.
   */
  private last: LockWaiter | undefined = undefined;

  asksBeside({ type }: { readonly type: HeldType }, { holders: [holder] }: Tenure): boolean {
    return type === 'read' && holder.type === 'read';
  }

  askNext(queue: AskingQueue, first: LockWaiter): void {
    if (first.terms.type === 'read') this.askSideBySide(queue, first);
    else if (queue.attempts === 0) queue.ask(first);
  }

  private askSideBySide(queue: AskingQueue, first: LockWaiter): void {
    const { turn } = queue;
    let reader: LockWaiter | undefined = this.last === undefined ? first : this.last.next;
    for (; reader?.terms.type === 'read'; reader = reader.next) {
      if (reader.attempt === undefined) {
        // Waits for the reader that asks under the place. One that enters the line now would get no place, and would hear
        // of no release.
        if (queue.attempts > 0 && (turn.hasPlace || (!reader.follows && turn.mayEnterLine(reader)))) return;
        queue.askBeside(reader);
      }
      this.last = reader;
    }
  }

  left(waiters: readonly LockWaiter[]): void {
    if (waiters.some((waiter) => waiter === this.last)) this.last = undefined;
  }

  /** Readers need no tokens, because they do not hand the lock off. */
  reserve(queue: AskingQueue, type: HeldType): number {
    return type === 'read' ? 0 : queue.reserveBehind(1);
  }

  /** Readers that follow another one need no place. Without a line, a writer has one, so that readers let it go first. */
  enterLine(turn: Turn, waiter: LockWaiter, isAlone: boolean): void {
    if (waiter.follows) return;
    if (waiter.terms.type !== 'write' || turn.hasLine()) turn.enterLine(waiter, isAlone);
    else if (isAlone) turn.place.use(waiter);
  }

  /** One that reads here does not keep the others from their turn. */
  keepsPlace(held: HeldLock): boolean {
    return held.type === 'read';
  }

  granted({ turn, waiting }: AskingQueue, waiter: LockWaiter, held: HeldLock): void {
    if (waiter === this.last) this.last = undefined;
    if (held.type === 'read' && turn.isPlace(held.owner)) this.letFollow(waiting);
  }

  /** Lets the readers right behind the one whose turn has come in with it, although others may be in line by now. */
  private letFollow(waiting: Iterable<LockWaiter>): void {
    for (const reader of waiting) {
      if (reader.terms.type !== 'read') return;
      reader.follows = true;
    }
  }

  notGranted({ state }: Outcome, waiter: LockWaiter): void {
    this.last = undefined;
    if (state === 'busy') waiter.follows = false;
  }

  /** A writer that also holds the read lock may keep it, so the next writer cannot have the lock yet. */
  passes(held: HeldLock, next: LockWaiter): boolean {
    return held.type === 'write' && next.terms.type === 'write' && held.downgrade === undefined;
  }

  leavesToOthers(held: HeldLock): boolean {
    return held.type !== 'read';
  }
}
