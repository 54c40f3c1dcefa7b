import { LockConfigurationError } from '../engine/errors.js';
import { type Duration, type Milliseconds, toWaitTime } from '../engine/terms/duration.js';
import type { WaitTerms } from '../engine/waiting/caller.js';

/** Options of a call that waits. @publicApi */
export interface WaitOptions {
  /** Ends the wait with LockAbortedError. */
  readonly signal?: AbortSignal;
}

/**
 * Checks how long a call of a handle waits, and what ends the wait.
 *
 * @param otherwise the wait time when none is given
 * @param what what errors call the call: `acquire() of the semaphore 'mail'`
 * @throws LockConfigurationError naming the argument that is wrong
 */
export function toWaitTerms(
  waitTime: Duration | undefined,
  otherwise: Milliseconds,
  options: WaitOptions | undefined,
  what: string,
): WaitTerms {
  const signal = options?.signal;
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
    throw new LockConfigurationError(`${what}: signal is not an AbortSignal`);
  }
  return { waitTime: waitTime === undefined ? otherwise : toWaitTime(waitTime, `${what}: waitTime`), signal };
}
