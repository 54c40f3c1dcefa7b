import { ExpiringMap, isPast, latestOf } from './expiring-map.js';

/** Owners that wait for one lock, in order of arrival: the queue of a fair lock, or waiting writers. */
export class WaitingOwners {
  private readonly deadlines = new ExpiringMap(isPast);

  /** Starts with one waiter: a lock without waiters has no object of this class. */
  constructor(owner: string, deadline: number, now: number) {
    this.deadlines.set(owner, deadline, now);
  }

  isEmpty(now: number): boolean {
    return this.head(now) === undefined;
  }

  /** The first live waiter, and when it expires. */
  head(now: number): readonly [owner: string, deadline: number] | undefined {
    return this.deadlines.first(now);
  }

  /** The waiter that expires last. Only where {@link isEmpty} is false. */
  lastToExpire(now: number): readonly [owner: string, deadline: number] {
    return latestOf(this.deadlines.alive(now));
  }

  /** Adds a waiter at the end. One that waits already keeps its position. */
  addOrRefresh(owner: string, deadline: number, now: number): void {
    if (!this.refresh(owner, deadline, now)) this.deadlines.set(owner, deadline, now);
  }

  /** False: this owner does not wait any more. */
  refresh(owner: string, deadline: number, now: number): boolean {
    if (this.deadlines.get(owner, now) === undefined) return false;
    this.deadlines.set(owner, deadline, now);
    return true;
  }

  /** False: this owner did not wait. */
  remove(owner: string): boolean {
    return this.deadlines.delete(owner);
  }

  owners(now: number): string[] {
    return this.deadlines.alive(now).map(([owner]) => owner);
  }
}
