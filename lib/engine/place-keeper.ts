import type { LockType } from '../backends/lock-backend.js';
import type { Timer } from '../backends/runtime.js';
import type { EngineParts } from './engine-parts.js';
import type { Waiter } from './waiter.js';

/**
 * Keeps the places fresh that waiters of one queue have in the backend (fair waiters, waiting writers), all by one command, three
 * times within the time after which a silent waiter counts as dead.
 */
export class PlaceKeeper {
  private timer: Timer | undefined;

  /**
   * @param places the waiters that have one now
   * @param gone called for a waiter whose place the backend had dropped
   */
  constructor(
    private readonly parts: EngineParts,
    private readonly key: string,
    private readonly type: LockType,
    private readonly places: () => readonly Waiter[],
    private readonly gone: (waiter: Waiter) => void,
  ) {}

  start(): void {
    this.timer ??= this.parts.runtime.timer(this.parts.placeTimeout / 3, () => void this.refresh());
  }

  stop(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }

  private async refresh(): Promise<void> {
    const waiters = this.places();
    this.timer = undefined;
    if (waiters.length === 0) return;
    this.start();
    const { key, type } = this;
    const places = waiters.map(({ owner }) => ({ key, type, owner }));
    try {
      const kept = await this.parts.backend.refreshPlaces(places, this.parts.placeTimeout);
      for (const [i, waiter] of waiters.entries()) if (!kept[i] && !waiter.settled) this.gone(waiter);
    } catch {
      // The next round tries again; a place that lapses meanwhile is taken anew by its waiter's next acquisition.
    }
  }
}
