import type { OwnerRef } from '../../../lib/backends/lock-backend.js';

/**
 * Watches the ids that one process sends to one backend. A release has no time limit, so an id that has released a key
 * must not acquire that key again. Otherwise a late copy of the release would free the new acquisition. The same
 * applies to a waiter that has left its queue.
 */
export class SpentOwners {
  private readonly spent = new Set<string>();

  /** @param reused called when an acquisition is sent with such an id */
  constructor(private readonly reused: (key: string, id: string) => void) {}

  /** To be called when an acquisition is sent. */
  acquiring({ key, owner }: Pick<OwnerRef, 'key' | 'owner'>): void {
    if (this.spent.has(`${owner} ${key}`)) this.reused(key, owner);
  }

  /** To be called when a release, or the removal of a waiter, is sent. */
  givingBack({ key, owner }: Pick<OwnerRef, 'key' | 'owner'>): void {
    this.spent.add(`${owner} ${key}`);
  }
}
