import type { HeldLock } from './held-lock.js';

/** Held locks in the order in which their leases end unless they are confirmed anew, the first to end first. A lock is in one list at the most. */
export class RenewalList {
  oldest: HeldLock | undefined;
  private newest: HeldLock | undefined;

  push(held: HeldLock): void {
    // Answers come about in the order of the questions, and most leases have one length: the place is at the end, or a few steps before it.
    const end = endOf(held);
    let older = this.newest;
    while (older !== undefined && endOf(older) > end) older = older.older;
    const newer = older === undefined ? this.oldest : older.newer;
    held.list = this;
    held.older = older;
    held.newer = newer;
    if (older === undefined) this.oldest = held;
    else older.newer = held;
    if (newer === undefined) this.newest = held;
    else newer.older = held;
  }

  remove(held: HeldLock): void {
    if (held.list !== this) return;
    if (held.older === undefined) this.oldest = held.newer;
    else held.older.newer = held.newer;
    if (held.newer === undefined) this.newest = held.older;
    else held.newer.older = held.older;
    held.older = held.newer = held.list = undefined;
  }
}

function endOf({ confirmed, validFor }: HeldLock): number {
  return confirmed.monotonic + validFor;
}
