import type { AcquisitionContext } from '../acquisition-context.js';
import type { HeldLock } from './held-lock.js';

/**
 * Sets the leases of these locks to `leaseTime` milliseconds and gives the locks up: they are neither renewed nor released, and lapse.
 *
 * @returns for each lock whether its owner was still there, or why that is not known
 */
export function shortenLeases(
  { backend, watchdog }: AcquisitionContext,
  locks: readonly HeldLock[],
  leaseTime: number,
): Promise<PromiseSettledResult<boolean>[]> {
  const shortened = locks.map((lock) => {
    lock.disown();
    watchdog.drop(lock);
    // A write lease lasts as long as the read lease of its owner.
    lock.downgrade?.abandon();
    // Local waiters ask how long the lock will last only when that is settled.
    const { key, type, owner, keeper } = lock;
    return backend.renew({ key, type, owner, leaseTime }).finally(() => keeper.forget(lock));
  });
  return Promise.allSettled(shortened);
}
