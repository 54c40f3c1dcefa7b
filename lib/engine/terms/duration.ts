import ms from 'ms';
import { LONGEST_TIMER } from '../../backends/runtime.js';
import { LockConfigurationError } from '../errors.js';

/**
 * Milliseconds as a number, or a string in the format of the `ms` package: `'250ms'`, `'30s'`, `'2m'`, `'1h'`. Waits
 * and time-outs are at most 24 days (2³¹ − 1 ms, the longest timer of Node.js), leases at most 10 years. Only
 * `waitTime` and `outageTimeout` may be `Infinity`, which means forever.
 *
 * @publicApi
 */
export type Duration = number | DurationText;

// Copied from ms: its own types need a default import, which becomes `any` for a compiler without esModuleInterop.
type DurationText = `${number}` | `${number}${DurationUnit}` | `${number} ${DurationUnit}`;
type DurationUnit = Unit | Uppercase<Unit> | Lowercase<Unit>;
type Unit =
  | ('Milliseconds' | 'Millisecond' | 'Msecs' | 'Msec' | 'Ms')
  | ('Seconds' | 'Second' | 'Secs' | 'Sec' | 's')
  | ('Minutes' | 'Minute' | 'Mins' | 'Min' | 'M')
  | ('Hours' | 'Hour' | 'Hrs' | 'Hr' | 'H')
  | ('Days' | 'Day' | 'D')
  | ('Weeks' | 'Week' | 'W')
  | ('Years' | 'Year' | 'Yrs' | 'Yr' | 'Y');

declare const resolved: unique symbol;

/** A checked duration. `Infinity`, where allowed, means forever. */
export type Milliseconds = number & { readonly [resolved]: true };

export const FOREVER = Number.POSITIVE_INFINITY as Milliseconds;

/**
 * The shortest lease. Below it, network and event-loop delays alone would make the lease of a healthy holder expire.
 */
export const MIN_LEASE_TIME = 100;

/** The largest value of an option that sets a timer. */
export const MAX_TIMEOUT = LONGEST_TIMER;

/**
 * Ten years as `ms` counts them, so that `'10y'` is allowed. It is far below the limit of PEXPIRE, and remains exact
 * when added to a time of the server.
 */
export const MAX_LEASE_TIME = 10 * 365.25 * 24 * 60 * 60 * 1_000;

/**
 * Checks a duration and returns it in milliseconds.
 *
 * @param what the name of the value in errors: `shutdownTimeout`
 * @param least the smallest allowed value
 * @param most the largest allowed value
 * @param unlimited what the error about `Infinity` advises, if there is a way to set no limit
 * @throws LockConfigurationError for anything else
 */
export function toMilliseconds(
  value: Duration,
  what: string,
  least = 0,
  most = MAX_TIMEOUT,
  unlimited?: string,
): Milliseconds {
  const parsed = typeof value === 'string' ? parse(value) : value;
  if (typeof parsed !== 'number' || Number.isNaN(parsed)) {
    throw new LockConfigurationError(
      `${what} is ${show(value)}: give milliseconds as a number, or a string such as '30s' or '2m'`,
    );
  }
  if (parsed < least) {
    const advice = typeof value === 'string' && /^\d+$/.test(value) ? `; did you mean '${value}s'?` : '';
    throw new LockConfigurationError(`${what} is ${show(value)}: it must be at least ${least} ms${advice}`);
  }
  if (parsed > most) {
    const limit = `at most ${most} ms (${most === MAX_LEASE_TIME ? '10 years' : '24 days'})`;
    const rule = parsed === FOREVER ? `finite, and ${limit}` : limit;
    const advice = parsed === FOREVER && unlimited !== undefined ? `; ${unlimited}` : '';
    throw new LockConfigurationError(`${what} is ${show(value)}: it must be ${rule}${advice}`);
  }
  return Math.ceil(parsed) as Milliseconds;
}

/** Checks a lease time: from 100 ms to 10 years. */
export function toLeaseTime(value: Duration, what: string): Milliseconds {
  return toMilliseconds(value, what, MIN_LEASE_TIME, MAX_LEASE_TIME);
}

/** Checks the option `leaseTime` of an acquisition. Without it, the lease is renewed for as long as it is held. */
export function toFixedLease(value: Duration, what: string): Milliseconds {
  const advice = 'to hold it until it is released, leave leaseTime out';
  return toMilliseconds(value, what, MIN_LEASE_TIME, MAX_LEASE_TIME, advice);
}

/** Checks the option `holdAtMost`. Without it, there is no limit. */
export function toHoldLimit(value: Duration, what: string): Milliseconds {
  return toMilliseconds(value, what, 1, MAX_TIMEOUT, 'to set no limit, leave holdAtMost out');
}

/** Checks a wait time. `Infinity` means forever. */
export function toWaitTime(value: Duration, what: string): Milliseconds {
  return value === FOREVER ? FOREVER : toMilliseconds(value, what);
}

function parse(text: string): number | undefined {
  return text.length > 0 && text.length <= 100 ? ms(text as DurationText) : undefined;
}

function show(value: unknown): string {
  return typeof value === 'string' ? `'${value.slice(0, 40)}'` : String(value);
}
