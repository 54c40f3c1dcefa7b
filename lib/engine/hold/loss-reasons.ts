import { LockLostError } from '../errors.js';
import type { KeptLeases } from './standby.js';

const WHY_GONE = '(was it force-released or deleted, or did the backend lose its data?)';

/** Why a lock or a permit was lost, and what the error says. */
const REASONS = {
  // The backend no longer held it when this process renewed, extended, confirmed, looked up or released it, although
  // its lease had not ended by this process's clock.
  gone: `it no longer existed at renewal ${WHY_GONE}`,
  'gone-at-extension': 'it no longer existed when extend() was called',
  'gone-at-confirmation': 'it no longer existed when this process tried to confirm it',
  'gone-at-lookup': `it no longer existed when it was looked up ${WHY_GONE}`,
  'gone-at-downgrade': 'it no longer existed when its read lock was requested',
  'gone-at-adoption': 'it no longer existed when this process adopted it with a ticket',
  'gone-at-release': 'it no longer existed when this process tried to release it',
  // Its fixed lease ended: as expected, or while this process was not running.
  ended: 'its lease ended',
  'ended-unnoticed': 'its lease ended while the machine was suspended or after its clock was changed',
  // Its lease ended before this process ran again to renew it.
  blocked: 'its lease was not renewed in time',
  'too-late':
    'this process could not renew it before its lease ended (was the event loop blocked, or the machine suspended?)',
  // Its lease ended while a renewal was under way, or after renewals had failed.
  unanswered: 'the backend did not confirm a renewal before the lease ended',
  failed: 'it could not be renewed before its lease ended',
} as const;

export type LossReason = keyof typeof REASONS;

/** Why a lock or a permit was lost. */
export interface Loss {
  readonly reason: LossReason;
  /** The failure of the last renewal, if that is the reason. */
  readonly error?: Error | undefined;
  /** For how many milliseconds the event loop was blocked during the lease, if that was too long. */
  readonly blockedFor?: number | undefined;
}

export function lockLostError(name: string, loss: Loss): LockLostError {
  const advice = 'Another caller may hold it now: stop, or fence your writes with the token';
  return new LockLostError(`The lock '${name}' was lost: ${describe(loss)}. ${advice}`, name);
}

/** The error for a loss that was noticed when the lock was released. */
export function lostOnReleaseError(name: string, loss: Loss): LockLostError {
  return new LockLostError(`The lock '${name}' was lost: ${describe(loss)}. Others may have held it meanwhile`, name);
}

/** @param reason why the backend removed the owner, unless a caller asked it to */
export function forcedReleaseError(name: string, reason = 'it was force-released'): LockLostError {
  return new LockLostError(`The lock '${name}' was lost: ${reason}`, name);
}

/** @param what the semaphore, in words */
export function permitLostError(what: string, name: string, loss: Loss): LockLostError {
  const why = loss.reason === 'gone' ? 'it no longer existed at renewal' : describe(loss);
  const advice = 'Another process may hold it now; stop the work that needs it';
  return new LockLostError(`A permit of ${what} was lost: ${why}. ${advice}`, name);
}

const SEE = 'See docs/blocked-event-loop.md';

/**
 * @param leaseTime of what is renewed, in milliseconds
 * @param kept what a standby has renewed meanwhile, if there is one
 * @param problem why it may have renewed less
 */
export function blockedWarning(blockedFor: number, leaseTime: number, kept?: KeptLeases, problem?: string): string {
  const blocked = `The event loop of this process was blocked for ${seconds(blockedFor)}`;
  if (kept !== undefined) {
    const { count, names, remainingTime, longest } = kept;
    const which = `${names.join(', ')}${count > names.length ? ', …' : ''}`;
    const what =
      count === 0
        ? 'nothing had to be kept'
        : `a thread kept ${count} of its locks and permits (${which}), with ${seconds(remainingTime)} left`;
    const over =
      blockedFor > longest ? `. Nothing was renewed after keepWhileBlocked (${seconds(longest)}) was over` : '';
    return `${blocked}; ${what}${over}${problem === undefined ? '' : `. ${problem}`}. ${SEE}`;
  }
  return `${blocked}, and nothing was renewed meanwhile. Locks are lost when it is blocked for longer than their lease (watchdogTimeout: ${seconds(leaseTime)}). ${SEE}`;
}

function describe({ reason, error, blockedFor }: Loss): string {
  const cause = error === undefined ? '' : `: ${error.message}`;
  if (blockedFor === undefined) return REASONS[reason] + cause;
  const blocked = `the event loop of this process was blocked for ${seconds(blockedFor)}`;
  if (reason === 'blocked') return `${REASONS.blocked}, because ${blocked}`;
  return `${REASONS[reason]} (during it, ${blocked})${cause}`;
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1_000).toFixed(1)} s`;
}
