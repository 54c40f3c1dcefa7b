import type { LockType } from '../backends/lock-backend.js';
import { type Duration, type Milliseconds, toLeaseTime, toWaitTime } from './duration.js';
import { LockConfigurationError } from './errors.js';

/** Options of one acquisition. @publicApi */
export interface LockOptions {
  /**
   * How long to wait while somebody else holds the lock, at most 2³¹ − 1 ms (24 days). 0: try once. `Infinity`: for ever. Absent: the
   * module's `waitTime`, by default for ever.
   */
  readonly waitTime?: Duration;
  /**
   * How long Redis keeps the lock: fixed, never renewed, from 100 ms to 10 years. Absent: kept for as long as it is held, by the watchdog.
   * Re-entry has the lease of what it re-enters: its own leaseTime is not applied, and where that lease is fixed, it ends with it. (The
   * read lock of a writer is a lock of its own, with a lease of its own.)
   */
  readonly leaseTime?: Duration;
  /** Default `'reentrant'`. */
  readonly type?: LockType;
  /** Ends the wait with LockAbortedError. It does nothing to a lease that was given. */
  readonly signal?: AbortSignal;
  /** What a lost lease does to the result of a body: `'throw'` LockLostError, or `'warn'`. Default: the module's. */
  readonly onLost?: 'throw' | 'warn';
}

/** {@link LockOptions} with every default filled in and every value checked. */
export interface AcquisitionTerms {
  readonly type: LockType;
  readonly waitTime: Milliseconds;
  readonly leaseTime: Milliseconds;
  /** The user gave the leaseTime: the watchdog keeps off. */
  readonly fixed: boolean;
  readonly signal: AbortSignal | undefined;
  readonly onLost: 'throw' | 'warn';
}

export const LOCK_TYPES: readonly LockType[] = ['reentrant', 'fair', 'read', 'write', 'fenced'];
const OPTION_NAMES = ['waitTime', 'leaseTime', 'type', 'signal', 'onLost'];

/**
 * Fills options up with `defaults`.
 *
 * @param what how errors name the call: `acquire('order:1')`
 * @throws LockConfigurationError naming the option that is wrong
 */
export function toTerms(options: LockOptions, defaults: AcquisitionTerms, what: string): AcquisitionTerms {
  if (typeof options !== 'object' || options === null) {
    throw new LockConfigurationError(`${what}: the options must be an object, but they are ${String(options)}`);
  }
  for (const option of Object.keys(options)) {
    if (!OPTION_NAMES.includes(option)) {
      throw new LockConfigurationError(`${what}: there is no option '${option}'; there are ${OPTION_NAMES.join(', ')}`);
    }
  }
  const { waitTime, leaseTime, type = defaults.type, signal, onLost = defaults.onLost } = options;
  if (!LOCK_TYPES.includes(type)) {
    throw new LockConfigurationError(`${what}: type is '${type}'; it must be one of ${LOCK_TYPES.join(', ')}`);
  }
  if (onLost !== 'throw' && onLost !== 'warn') {
    throw new LockConfigurationError(`${what}: onLost is '${onLost}'; it must be 'throw' or 'warn'`);
  }
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
    throw new LockConfigurationError(`${what}: signal is no AbortSignal`);
  }
  return {
    type,
    onLost,
    signal,
    fixed: leaseTime !== undefined,
    waitTime: waitTime === undefined ? defaults.waitTime : toWaitTime(waitTime, `${what}: waitTime`),
    leaseTime: leaseTime === undefined ? defaults.leaseTime : toLeaseTime(leaseTime, `${what}: leaseTime`),
  };
}
