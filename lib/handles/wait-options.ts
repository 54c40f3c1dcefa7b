import { LockConfigurationError } from '../engine/errors.js';
import { type Duration, type Milliseconds, toWaitTime } from '../engine/terms/duration.js';
import { CHECKED_LATER, checkOptions, type OptionTable } from '../engine/terms/option-table.js';
import type { WaitTerms } from '../engine/terms/wait-terms.js';

/** Options of a call that waits. @publicApi */
export interface WaitOptions {
  /** How long to wait while Redis does not answer, or `Infinity`. Default: the module's `outageTimeout`. */
  readonly outageTimeout?: Duration;
  /** Ends the wait with LockAbortedError. */
  readonly signal?: AbortSignal;
}

/** Options of `withPermit`. @publicApi */
export interface WithPermitOptions extends WaitOptions {
  /** How long to wait for a permit. Default: the module's `waitTime`. */
  readonly waitTime?: Duration;
}

/**
 * The arguments of `withPermit(options?, body)`.
 *
 * @throws LockConfigurationError naming the invalid argument
 */
export function toWithPermit<Body>(
  optionsOrBody: WithPermitOptions | Body,
  body: Body | undefined,
  what: string,
): { readonly options: WithPermitOptions; readonly body: Body } {
  if (typeof optionsOrBody === 'function') return { options: {}, body: optionsOrBody as Body };
  if (typeof body !== 'function') throw new LockConfigurationError(`${what}: the last argument must be a function`);
  const options = optionsOrBody as WithPermitOptions;
  checkOptions(options, WITH_PERMIT_OPTIONS, what);
  return { options, body };
}

const WITH_PERMIT_OPTIONS: OptionTable<WithPermitOptions> = {
  waitTime: CHECKED_LATER,
  outageTimeout: CHECKED_LATER,
  signal: CHECKED_LATER,
};

/**
 * Checks how long a call of a handle waits, and its signal.
 *
 * @param otherwise the default times
 * @param what the name of the call in errors: `acquire() of the semaphore 'mail'`
 * @throws LockConfigurationError naming the invalid argument
 */
export function toWaitTerms(
  waitTime: Duration | undefined,
  otherwise: { readonly waitTime: Milliseconds; readonly outageTimeout: Milliseconds },
  options: WaitOptions | undefined,
  what: string,
): WaitTerms {
  const { signal, outageTimeout } = options ?? {};
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
    throw new LockConfigurationError(`${what}: signal is not an AbortSignal`);
  }
  return {
    waitTime: waitTime === undefined ? otherwise.waitTime : toWaitTime(waitTime, `${what}: waitTime`),
    outageTimeout:
      outageTimeout === undefined ? otherwise.outageTimeout : toWaitTime(outageTimeout, `${what}: outageTimeout`),
    signal,
  };
}
