import { KEPT_FAR_BACK } from '../../backends/line-backend.js';
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
export type RegisteredWaiter = Pick<LockWaiter, 'owner' | 'settled'> & {
  /** Makes the nonce of a refresh that is sent now: see {@link WaiterRef}. */
  newNonce?(): string | undefined;
};

/** A request that has registered waiters, and when it was sent, on the monotonic clock. */
interface Registration {
  readonly sent: number;
  /** Whether the backend keeps them longer than the waiterTimeout. */
  readonly areKeptLonger: boolean;
}

const UNREGISTERED: Registration = { sent: Number.NEGATIVE_INFINITY, areKeptLonger: false };

/**
 * Keeps the waiters of one queue registered in the backend (fair waiters, a place in line). One command
 * refreshes them all, three times within the waiterTimeout, after which the backend considers a silent waiter dead. If the
 * backend keeps them longer, they are refreshed three times within that time.
 */
export class WaiterHeartbeat<Registered extends RegisteredWaiter> {
  private timer: Timer | undefined;
  /** The last request whose waiters the backend keeps longer. */
  private keptLonger: { readonly sent: number; readonly owners: readonly string[] } | undefined;

  /**
   * @param waiters returns the waiters that are registered now
   * @param dropped called for a waiter that the backend had considered dead
   * @param registered returns what the last request, if there was one, says that has registered all of them again. They are
   *   not refreshed before a third of the time has passed for which they are kept since then
   */
  constructor(
    private readonly services: Needs,
    private readonly key: string,
    private readonly type: HeldType,
    private readonly waiters: () => readonly Registered[],
    private readonly dropped: (waiter: Registered) => void,
    private readonly registered: () => Registration | undefined = () => undefined,
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

  /** When these waiters have to be refreshed, on the monotonic clock. */
  private dueAt(waiters: readonly Registered[]): number {
    const { interval, keptLonger: longer } = this;
    const { sent, areKeptLonger } = this.registered() ?? UNREGISTERED;
    if (longer !== undefined && longer.sent > sent && waiters.every(({ owner }) => longer.owners.includes(owner)))
      return longer.sent + KEPT_FAR_BACK * interval;
    return sent + (areKeptLonger ? KEPT_FAR_BACK * interval : interval);
  }

  private refreshAfter(delay: number): void {
    this.timer = this.services.runtime.timer(delay, () => void this.refresh());
  }

  private async refresh(): Promise<void> {
    const waiters = this.waiters();
    this.timer = undefined;
    if (waiters.length === 0) return;
    const { key, type, services, interval } = this;
    const { backend, waiterTimeout } = services;
    const sent = services.runtime.monotonic();
    const early = this.dueAt(waiters) - sent;
    // Others may be registered before these are due.
    if (early >= 1) return this.refreshAfter(Math.min(early, interval));
    this.start();
    const owners = waiters.map(({ owner }) => owner);
    try {
      const known = await backend.refreshWaiters(
        waiters.map((waiter) => ({ key, type, owner: waiter.owner, nonce: waiter.newNonce?.() })),
        waiterTimeout,
        () => {
          this.keptLonger = { sent, owners };
        },
      );
      for (const [i, waiter] of waiters.entries()) if (!known[i] && !waiter.settled) this.dropped(waiter);
    } catch {
      // The next heartbeat tries again. A waiter that is dropped meanwhile joins the queue again with its next
      // acquisition.
    }
  }
}
