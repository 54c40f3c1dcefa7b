import { isPast, LapsingMap, lastOf } from './lapsing-map.js';

/** Owners that wait for one lock, in the order in which they came: the queue of a fair lock, or announced writers. */
export class Places {
  private readonly deadlines = new LapsingMap(isPast);

  /** Never empty: a lock without waiters has none of these. */
  constructor(owner: string, deadline: number, now: number) {
    this.deadlines.set(owner, deadline, now);
  }

  isOver(now: number): boolean {
    return this.head(now) === undefined;
  }

  /** The first whose place did not lapse, and when it will. */
  head(now: number): readonly [owner: string, deadline: number] | undefined {
    return this.deadlines.first(now);
  }

  /** The one whose place lapses last. Only where {@link isOver} is false. */
  longest(now: number): readonly [owner: string, deadline: number] {
    return lastOf(this.deadlines.alive(now));
  }

  /** Gives a place at the end, or keeps the one that is there. */
  keep(owner: string, deadline: number, now: number): void {
    if (!this.refresh(owner, deadline, now)) this.deadlines.set(owner, deadline, now);
  }

  /** False: the place was gone. */
  refresh(owner: string, deadline: number, now: number): boolean {
    if (this.deadlines.get(owner, now) === undefined) return false;
    this.deadlines.set(owner, deadline, now);
    return true;
  }

  /** False: there was no place. */
  leave(owner: string): boolean {
    return this.deadlines.delete(owner);
  }

  owners(now: number): string[] {
    return this.deadlines.alive(now).map(([owner]) => owner);
  }
}
