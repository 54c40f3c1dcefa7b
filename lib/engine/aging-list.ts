import type { HeldLock } from './held-lock.js';

/** Held locks in the order in which their leases were confirmed, the oldest first. A lock is in one list at the most. */
export class AgingList {
  oldest: HeldLock | undefined;
  private newest: HeldLock | undefined;

  push(held: HeldLock): void {
    // Answers come about in the order of the questions: the place is at the end, or a few steps before it.
    let older = this.newest;
    while (older !== undefined && older.confirmed.monotonic > held.confirmed.monotonic) older = older.older;
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
