import { LockLostError } from '../errors.js';
import type { HeldLock, LockShare, ReleaseOutcome } from './held-lock.js';
import type { Moment } from './lease-clock.js';

/** Gives back a share in each of these locks. Without a promise, there is nothing to wait for. */
export function dropShares(
  locks: readonly HeldLock[],
  share: LockShare,
  now: Moment,
): ReleaseOutcome | Promise<ReleaseOutcome> {
  if (locks.length === 1) return locks[0].drop(share, now);
  return Promise.all(locks.map((lock) => lock.drop(share, now))).then(worst);
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
