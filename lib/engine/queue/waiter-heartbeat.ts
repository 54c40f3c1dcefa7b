import type { LockType } from '../../backends/lock-backend.js';
import type { Timer } from '../../backends/runtime.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import type { Waiter } from '../waiting/waiter.js';

/**
 * Keeps the places fresh that waiters of one queue have in the backend (fair waiters, waiting writers), all by one command, three
 * times within the time after which a silent waiter counts as dead.
 */
export class WaiterHeartbeat {
  private timer: Timer | undefined;

  /**
   * @param places the waiters that have one now
   * @param gone called for a waiter whose place the backend had dropped
   */
  constructor(
    private readonly context: AcquisitionContext,
    private readonly key: string,
    private readonly type: LockType,
    private readonly places: () => readonly Waiter[],
    private readonly gone: (waiter: Waiter) => void,
  ) {}

  start(): void {
    this.timer ??= this.context.runtime.timer(this.context.fairWaitTimeout / 3, () => void this.refresh());
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
      const kept = await this.context.backend.refreshWaiters(places, this.context.fairWaitTimeout);
      for (const [i, waiter] of waiters.entries()) if (!kept[i] && !waiter.settled) this.gone(waiter);
    } catch {
      // The next round tries again; a place that lapses meanwhile is taken anew by its waiter's next acquisition.
    }
  }
}
