import type { Outcome } from '../ask/attempt.js';
import type { HeldLock, LockWaiter } from '../hold/held-lock.js';
import type { Tenure } from '../hold/tenure.js';
import { MOST_PERMITS } from '../terms/lock-options.js';
import type { Turn } from './turn.js';
import type { AskingQueue, WayOfAsking } from './way-of-asking.js';

/** As many callers ask side by side as may hold the lock beside its holders here. */
export class Permits implements WayOfAsking {
  readonly servesFirstOnly = false;
  /** Only those permits are not asked for. */
  readonly asksBehindReleases = true;
  readonly believesGrants = true;
  readonly reservesPlace = true;
  /**
   * How many callers ask side by side. After a busy answer it is one, because the next ones would be refused as well, and
   * it doubles with each further permit that is granted.
   */
  private sideBySide = MOST_PERMITS;

  asksBeside({ permits = 1 }: { readonly permits: number | undefined }, { size }: Tenure): boolean {
    return size < permits;
  }

  askNext(queue: AskingQueue): void {
    for (const waiter of queue.waiting) {
      const most = Math.min(Math.max(1, this.sideBySide), roomFor(waiter, queue.tenure));
      if (queue.attempts >= most) return;
      if (waiter.attempt === undefined) queue.ask(waiter);
    }
  }

  reserve(queue: AskingQueue): number {
    const { first } = queue.waiting;
    return queue.reserveBehind(first === undefined ? 1 : Math.max(1, roomFor(first, queue.tenure)));
  }

  enterLine(turn: Turn, waiter: LockWaiter, isAlone: boolean): void {
    turn.enterLine(waiter, isAlone);
  }

  keepsPlace(): boolean {
    return true;
  }

  granted(): void {
    this.sideBySide = Math.max(1, this.sideBySide * 2);
  }

  notGranted({ state }: Outcome): void {
    if (state === 'busy') this.sideBySide = 0; // it is one again after the next grant
  }

  /**
   * The backend has compared the number of holders with that of the present one. A caller that lets fewer hold the lock
   * has to ask again, and so does one for whom this process alone holds too many permits.
   */
  passes(held: HeldLock, { terms: { permits = 1 } }: LockWaiter, tenure: Tenure): boolean {
    return permits >= (held.permits ?? 1) && permits >= tenure.sizeWith(held);
  }

  leavesToOthers(): boolean {
    return true;
  }
}

/** How many more owners of this process may hold the lock, according to this waiter. */
function roomFor({ terms }: LockWaiter, tenure: Tenure): number {
  return (terms.permits ?? 1) - tenure.mostHolders;
}
