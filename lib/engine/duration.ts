import ms from 'ms';
import { LockConfigurationError } from './errors.js';

/** Milliseconds as a number, or a string in the form of the `ms` package: `'250ms'`, `'30s'`, `'2m'`, `'1h'`. @publicApi */
export type Duration = number | ms.StringValue;

declare const resolved: unique symbol;

/** A duration that was checked once, at the edge. `Infinity` means for ever, where for ever is allowed. */
export type Milliseconds = number & { readonly [resolved]: true };

export const FOREVER = Number.POSITIVE_INFINITY as Milliseconds;

/** The shortest lease: below it, network and event-loop delays alone make a lease expire under a healthy holder. */
export const MIN_LEASE_TIME = 100;

/**
 * Checks a duration and gives it in milliseconds.
 *
 * @param what how the error names it: `leaseTime of acquire('order:1')`
 * @param least the smallest value allowed
 * @throws LockConfigurationError for anything that is no duration of at least `least` milliseconds
 */
export function toMilliseconds(value: Duration, what: string, least = 0): Milliseconds {
  const parsed = typeof value === 'string' ? parse(value) : value;
  if (typeof parsed !== 'number' || Number.isNaN(parsed)) {
    throw new LockConfigurationError(
      `${what} is ${show(value)}: give milliseconds as a number, or a string such as '30s' or '2m'`,
    );
  }
  if (!Number.isFinite(parsed))
    throw new LockConfigurationError(`${what} is ${parsed}: it must be finite; to wait for ever, leave waitTime out`);
  if (parsed < least) throw new LockConfigurationError(`${what} is ${show(value)}: it must be at least ${least} ms`);
  return Math.ceil(parsed) as Milliseconds;
}

function parse(text: string): number | undefined {
  return text.length > 0 && text.length <= 100 ? ms(text as ms.StringValue) : undefined;
}

function show(value: unknown): string {
  return typeof value === 'string' ? `'${value.slice(0, 40)}'` : String(value);
}
