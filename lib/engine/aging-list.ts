import type { HeldLock } from './held-lock.js';

/** Held locks in the order in which their leases were confirmed, the oldest first. A lock is in one list at the most. */
export class AgingList {
  oldest: HeldLock | undefined;
  private newest: HeldLock | undefined;

  push(held: HeldLock): void {
    held.list = this;
    held.older = this.newest;
    if (this.newest === undefined) this.oldest = held;
    else this.newest.newer = held;
    this.newest = held;
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
