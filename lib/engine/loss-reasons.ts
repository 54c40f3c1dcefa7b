import { LockLostError } from './errors.js';
import type { ReleaseOutcome } from './lease/held-lock.js';

/** Why the watchdog has declared a lock or a permit lost, and what the error says. */
const REASONS = {
  // The backend no longer held it when this process renewed it, extended it, tried to confirm it, or looked it up.
  gone: 'it no longer existed at renewal (was it force-released or deleted, or did the backend lose its data?)',
  'gone-at-extension': 'it no longer existed when extend() was called',
  'gone-at-confirmation': 'it no longer existed when this process tried to confirm it',
  'gone-at-lookup': 'it no longer existed when it was looked up',
  // Its fixed lease ended: as expected, or while this process was not running.
  ended: 'its lease ended',
  'ended-unnoticed': 'its lease ended while the machine was suspended or after its clock was changed',
  // Its lease ended before this process ran again to renew it, or to check it.
  'too-late':
    'this process could not renew it before its lease ended (was the event loop blocked, or the machine suspended?)',
  'checked-too-late': 'its lease ended before this process checked it again (was the event loop blocked?)',
  // Its lease ended while a renewal was under way, or after renewals had failed.
  unanswered: 'the backend did not confirm a renewal before the lease ended',
  failed: 'it could not be renewed before its lease ended',
} as const;

export type LossReason = keyof typeof REASONS;

/** @param error the failure of the last renewal, if that is the reason */
export function lockLostError(name: string, reason: LossReason, error: Error | undefined): LockLostError {
  const why = error === undefined ? REASONS[reason] : `${REASONS[reason]}: ${error.message}`;
  const advice = 'Another caller may hold it now: stop, or fence your writes with the token';
  return new LockLostError(`The lock '${name}' was lost: ${why}. ${advice}`, name);
}

/** The error for a loss that was noticed when the lock was released. */
export function lostOnReleaseError(name: string, outcome: ReleaseOutcome): LockLostError {
  const why =
    outcome === 'gone'
      ? 'it no longer existed when this process tried to release it'
      : 'its lease had ended before it was released';
  return new LockLostError(`The lock '${name}' was lost: ${why}. Others may have held it meanwhile`, name);
}

/** @param reason why the backend removed the owner, unless a caller asked it to */
export function forcedReleaseError(name: string, reason = 'it was force-released'): LockLostError {
  return new LockLostError(`The lock '${name}' was lost: ${reason}`, name);
}

/** @param what the semaphore, in words */
export function permitLostError(what: string, name: string, reason: LossReason): LockLostError {
  const why = reason === 'gone' ? 'it no longer existed at renewal' : REASONS.failed;
  const advice = 'Another process may hold it now; stop the work that needs it';
  return new LockLostError(`A permit of ${what} was lost: ${why}. ${advice}`, name);
}
