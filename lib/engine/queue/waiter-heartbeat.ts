import type { LockType } from '../../backends/lock-backend.js';
import type { Timer } from '../../backends/runtime.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import type { LockWaiter } from '../lease/held-lock.js';

/**
 * Tells the backend that the waiters of one queue which it knows (fair waiters, waiting writers) are alive: all of them by one command, three
 * times within the fairWaitTimeout, after which a silent waiter counts as dead.
 */
export class WaiterHeartbeat {
  private timer: Timer | undefined;

  /**
   * @param waiters those that the backend knows now
   * @param dropped called for a waiter that the backend had taken for dead
   */
  constructor(
    private readonly context: AcquisitionContext,
    private readonly key: string,
    private readonly type: LockType,
    private readonly waiters: () => readonly LockWaiter[],
    private readonly dropped: (waiter: LockWaiter) => void,
  ) {}

  start(): void {
    this.timer ??= this.context.runtime.timer(this.context.fairWaitTimeout / 3, () => void this.refresh());
  }

  stop(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }

  private async refresh(): Promise<void> {
    const waiters = this.waiters();
    this.timer = undefined;
    if (waiters.length === 0) return;
    this.start();
    const { key, type } = this;
    const { backend, fairWaitTimeout } = this.context;
    const owners = waiters.map(({ owner }) => ({ key, type, owner }));
    try {
      const known = await backend.refreshWaiters(owners, fairWaitTimeout);
      for (const [i, waiter] of waiters.entries()) if (!known[i] && !waiter.settled) this.dropped(waiter);
    } catch {
      // The next heartbeat tries again. A waiter that is dropped meanwhile joins the queue again with its next acquisition.
    }
  }
}
