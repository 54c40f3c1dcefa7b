import { LockConfigurationError } from '../engine/errors.js';

/** The largest number that Redisson can store for a count. */
const MAX_COUNT = 2 ** 31 - 1;

/**
 * Checks a number of permits or steps.
 *
 * @param what the name of the value in errors: `acquire() of the semaphore 'mail': permits`
 * @throws LockConfigurationError unless it is a whole number from `least` to `most`
 */
export function toCount(value: unknown, what: string, least = 0, most = MAX_COUNT): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  const shown = typeof value === 'string' ? `'${value.slice(0, 40)}'` : String(value);
  throw new LockConfigurationError(`${what} is ${shown}: it must be a whole number from ${least} to ${most}`);
}
