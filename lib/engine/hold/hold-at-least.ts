import type { BackendError } from '../../backends/lock-backend.js';
import { unusedOwner } from '../ask/unused-owner.js';
import type { Moment } from '../time/lease-clock.js';
import type { HeldLock, ReleaseOutcome } from './held-lock.js';
import type { HoldServices } from './hold-services.js';

// `holdAtLeast`: a lock that outlives its last lease for a while, without being renewed or released.

/** Whether a lock has to stay held after its last share. */
export function isKept({ keepUntil, lost }: HeldLock, now: Moment): boolean {
  return keepUntil > now.monotonic && lost === undefined;
}

/** The services that are needed here. */
type Needs = Pick<HoldServices, 'backend' | 'backgroundReleases' | 'clock' | 'events' | 'runtime' | 'watchdog'>;

/**
 * Shortens the lease to the time for which the lock has to be kept, and lets it lapse. It is neither renewed nor
 * released.
 */
export async function leaveToLapse(
  { backend, backgroundReleases, clock, events, runtime, watchdog }: Needs,
  lock: HeldLock,
  now: Moment,
): Promise<ReleaseOutcome> {
  const { key, type, owner, keeper } = lock;
  const leaseTime = Math.ceil(lock.keepUntil - now.monotonic);
  const withdrawn = lock.standby?.withdraw(lock);
  lock.forgetShares();
  watchdog.drop(lock);
  lock.downgrade?.abandon(); // a write lease lasts as long as the read lease of its owner
  // It would last longer if a late copy of the acquisition were executed, or while its owner reads.
  if (lock.lateCopiesUntil !== undefined || lock.downgrade !== undefined)
    runtime.timer(leaseTime, () => backgroundReleases.release(unusedOwner(lock)));
  try {
    if (withdrawn !== undefined) await withdrawn;
    const isThere = await backend.renew({ key, type, owner, leaseTime });
    // After `leaseTime`, a second copy of the command may have found the shortened lease already ended.
    return isThere || clock.age(now) >= leaseTime ? 'released' : 'gone';
  } catch (error) {
    const { message } = error as BackendError;
    events.logger.warn(
      `The lease of the lock '${lock.name}' could not be shortened to ${leaseTime} ms; the lock stays held until its lease ends: ${message}`,
    );
    return 'released';
  } finally {
    keeper.forget(lock); // not earlier, because local waiters then ask how long the lock will last
  }
}
