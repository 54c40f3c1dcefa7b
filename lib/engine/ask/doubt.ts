import type { OwnerRef } from '../../backends/lock-backend.js';
import type { Attempt } from './attempt.js';
import type { UnusedOwner } from './unused-owner.js';

/**
 * What several requests for one owner id may have left in the backend. As long as the id is used, nothing is undone,
 * because a release has no time limit and would also free what a later request has taken. The code that gives the id up
 * undoes everything: {@link undo}.
 */
export class Doubt {
  /** Whether the backend may hold the lock for this owner, or may still acquire it, without a lease here. */
  exists = false;
  /**
   * The latest time on the backend's clock until which a copy of one of the requests may be executed. Undefined: no copy
   * is under way, so that the first answered release is final.
   */
  until: number | undefined;

  /** Adds what an attempt, or the acquisition of a lock, may have left. */
  note({ leavesTraces, lateCopiesUntil }: Pick<Attempt, 'leavesTraces' | 'lateCopiesUntil'>): void {
    if (!leavesTraces) return;
    this.exists = true;
    if (lateCopiesUntil !== undefined) this.until = Math.max(this.until ?? lateCopiesUntil, lateCopiesUntil);
  }

  /**
   * Releases the owner in the background, if it may hold the lock. The id must not be used again after that.
   *
   * @param waits the owner may also be registered as a waiter
   */
  undo(
    releases: { release(owner: UnusedOwner): void },
    { key, type, owner }: OwnerRef,
    leaseTime: number,
    waits = false,
  ): void {
    if (!this.exists) return;
    releases.release({ key, type, owner, leaseTime, validUntil: this.until, waits });
    this.exists = false;
    this.until = undefined;
  }
}
