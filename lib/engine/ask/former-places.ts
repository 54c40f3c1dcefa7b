import type { Runtime } from '../../backends/runtime.js';

/**
 * The owner ids of places in line that this process has left or used up. A replica that has become the master may still
 * have such a place, and grant it the lock. So they are remembered for as long as it keeps the place. An owner that holds
 * the lock, or whose release is unanswered, is not among them.
 */
export class FormerPlaces {
  /** Until when on the monotonic clock, in the order in which the places have ended. */
  private readonly ends = new Map<string, number>();

  constructor(
    private readonly runtime: Pick<Runtime, 'monotonic'>,
    private readonly waiterTimeout: number,
  ) {}

  add(owner: string): void {
    const now = this.runtime.monotonic();
    for (const [earlier, end] of this.ends) {
      if (end > now) break;
      this.ends.delete(earlier);
    }
    this.ends.delete(owner);
    this.ends.set(owner, now + this.waiterTimeout);
  }

  has(owner: string): boolean {
    return (this.ends.get(owner) ?? 0) > this.runtime.monotonic();
  }
}
