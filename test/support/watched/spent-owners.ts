import type { OwnerRef } from '../../../lib/backends/lock-backend.js';

/**
 * Watches the ids that one process sends to one backend. A release carries no time limit, so an id that was given back
 * under a key is spent there: a late copy of the release would free whatever is acquired under it again. The same goes
 * for a waiter that has left its queue.
 */
export class SpentOwners {
  private readonly spent = new Set<string>();

  /** @param reused called when an acquisition is sent with an id that is spent */
  constructor(private readonly reused: (key: string, id: string) => void) {}

  /** An acquisition is sent. */
  acquiring({ key, owner }: Pick<OwnerRef, 'key' | 'owner'>): void {
    if (this.spent.has(`${owner} ${key}`)) this.reused(key, owner);
  }

  /** A release is sent, or the removal of a waiter. */
  givingBack({ key, owner }: Pick<OwnerRef, 'key' | 'owner'>): void {
    this.spent.add(`${owner} ${key}`);
  }
}
