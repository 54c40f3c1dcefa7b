import type { HeldType, OwnerRef } from '../../backends/lock-backend.js';
import type { Timer } from '../../backends/runtime.js';
import type { LockWaiter } from '../hold/held-lock.js';
import type { Services } from '../services.js';

/** The services that are needed here. */
type Needs = Pick<Services, 'backend' | 'backgroundReleases' | 'runtime' | 'waiterTimeout' | 'work'>;

/** Removes a waiter from the backend. If there is no answer, this is repeated in the background. */
export function unregister(services: Needs, { key, type, owner }: OwnerRef): void {
  const waiter = { key, type, owner };
  const { backend, backgroundReleases, waiterTimeout, work } = services;
  work.removalStarted();
  backend
    .removeWaiter(waiter)
    .catch(() => backgroundReleases.release({ ...waiter, leaseTime: waiterTimeout, waits: true }))
    .finally(() => work.removalEnded());
}

/** What the backend knows of a waiter. */
export type RegisteredWaiter = Pick<LockWaiter, 'owner' | 'settled'>;

/**
 * Keeps the waiters of one queue registered in the backend (fair waiters, a place in line). One command
 * refreshes them all, three times within the waiterTimeout, after which the backend considers a silent waiter dead.
 */
export class WaiterHeartbeat<Registered extends RegisteredWaiter> {
  private timer: Timer | undefined;

  /**
   * @param waiters returns the waiters that are registered now
   * @param dropped called for a waiter that the backend had considered dead
   * @param keptAt returns when a request has registered all of them again, on the monotonic clock, if one has. They are
   *   not refreshed before a third of the waiterTimeout has passed since then
   */
  constructor(
    private readonly services: Needs,
    private readonly key: string,
    private readonly type: HeldType,
    private readonly waiters: () => readonly Registered[],
    private readonly dropped: (waiter: Registered) => void,
    private readonly keptAt: () => number | undefined = () => undefined,
  ) {}

  start(): void {
    if (this.timer === undefined) this.refreshAfter(this.interval);
  }

  stop(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }

  private get interval(): number {
    return this.services.waiterTimeout / 3;
  }

  private refreshAfter(delay: number): void {
    this.timer = this.services.runtime.timer(delay, () => void this.refresh());
  }

  private async refresh(): Promise<void> {
    const waiters = this.waiters();
    this.timer = undefined;
    if (waiters.length === 0) return;
    const early = this.interval - (this.services.runtime.monotonic() - (this.keptAt() ?? -Infinity));
    if (early >= 1) return this.refreshAfter(early);
    this.start();
    const { key, type } = this;
    const { backend, waiterTimeout } = this.services;
    const owners = waiters.map(({ owner }) => ({ key, type, owner }));
    try {
      const known = await backend.refreshWaiters(owners, waiterTimeout);
      for (const [i, waiter] of waiters.entries()) if (!known[i] && !waiter.settled) this.dropped(waiter);
    } catch {
      // The next heartbeat tries again. A waiter that is dropped meanwhile joins the queue again with its next
      // acquisition.
    }
  }
}
