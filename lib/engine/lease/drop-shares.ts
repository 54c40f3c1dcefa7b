import type { BackendError } from '../../backends/lock-backend.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import { LockLostError } from '../errors.js';
import type { HeldLock, LockShare, ReleaseOutcome } from './held-lock.js';
import type { Moment } from './lease-clock.js';

/** Gives back a share in each of these locks. Without a promise, there is nothing to wait for. */
export function dropShares(
  context: AcquisitionContext,
  locks: readonly HeldLock[],
  share: LockShare,
  now: Moment,
): ReleaseOutcome | Promise<ReleaseOutcome> {
  if (locks.length === 1) return drop(context, locks[0], share, now);
  return Promise.all(locks.map((lock) => drop(context, lock, share, now))).then(worst);
}

/** Whether a lock outlives its last share: it lapses later. */
export function isKept({ keepUntil, lost }: HeldLock, now: Moment): boolean {
  return keepUntil > now.monotonic && lost === undefined;
}

function drop(
  context: AcquisitionContext,
  lock: HeldLock,
  share: LockShare,
  now: Moment,
): ReleaseOutcome | Promise<ReleaseOutcome> {
  const isLast = lock.shares.length === 1;
  return isLast && isKept(lock, now) ? leave(context, lock, now) : lock.drop(share, now);
}

/** Cuts the lease to the time for which the lock is to be kept, and gives the lock up: it is neither renewed nor released, and lapses. */
async function leave(
  { backend, clock, events, watchdog }: AcquisitionContext,
  lock: HeldLock,
  now: Moment,
): Promise<ReleaseOutcome> {
  const { key, type, owner, keeper } = lock;
  const leaseTime = Math.ceil(lock.keepUntil - now.monotonic);
  lock.disown();
  watchdog.drop(lock);
  lock.downgrade?.abandon(); // a write lease lasts as long as the read lease of its owner
  try {
    const isThere = await backend.renew({ key, type, owner, leaseTime });
    // Later than that, the shortened lease may have ended before a second copy of the command arrived.
    return isThere || clock.age(now) >= leaseTime ? 'released' : 'gone';
  } catch (error) {
    const { message } = error as BackendError;
    events.logger.warn(
      `The lock '${lock.name}' could not be cut to ${leaseTime} ms, and ends with its lease: ${message}`,
    );
    return 'released';
  } finally {
    keeper.forget(lock); // local waiters ask only now how long the lock will last
  }
}

/** The loss of a lock that was noticed when it was released. */
export function lostOnRelease(name: string, outcome: ReleaseOutcome): LockLostError {
  const why =
    outcome === 'gone'
      ? 'it was not there any more when it was to be released'
      : 'its lease had ended before it was released';
  return new LockLostError(`The lock '${name}' was lost: ${why}. Others may have held it meanwhile`, name);
}

function worst(outcomes: readonly ReleaseOutcome[]): ReleaseOutcome {
  return outcomes.includes('gone') ? 'gone' : outcomes.includes('unreachable') ? 'unreachable' : 'released';
}
