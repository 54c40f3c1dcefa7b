import { type Duration, type Milliseconds, toWaitTime } from '../engine/duration.js';
import { LockConfigurationError } from '../engine/errors.js';
import type { WaitTerms } from '../engine/waiting/caller.js';

/** Options of a call that waits. @publicApi */
export interface WaitOptions {
  /** Ends the wait with LockAbortedError. */
  readonly signal?: AbortSignal;
}

/**
 * @param what how errors name the call: `acquire() of the semaphore 'mail'`
 * @throws LockConfigurationError naming what is wrong
 */
export function toWaitTerms(
  waitTime: Duration | undefined,
  otherwise: Milliseconds,
  options: WaitOptions | undefined,
  what: string,
): WaitTerms {
  const signal = options?.signal;
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
    throw new LockConfigurationError(`${what}: signal is no AbortSignal`);
  }
  return { waitTime: waitTime === undefined ? otherwise : toWaitTime(waitTime, `${what}: waitTime`), signal };
}

/** The largest number that Java holds in the same place. */
const MOST = 2 ** 31 - 1;

/**
 * Checks a number of permits or steps.
 *
 * @param what how errors name it: `acquire() of the semaphore 'mail': permits`
 * @throws LockConfigurationError when it is no whole number from `least` to `most`
 */
export function toCount(value: unknown, what: string, least = 0, most = MOST): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  const shown = typeof value === 'string' ? `'${value.slice(0, 40)}'` : String(value);
  throw new LockConfigurationError(`${what} is ${shown}: it must be a whole number from ${least} to ${most}`);
}
