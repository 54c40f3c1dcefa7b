import type { LockType } from '../../backends/lock-backend.js';
import { LockConfigurationError } from '../errors.js';
import { type Duration, type Milliseconds, toLeaseTime, toWaitTime } from './duration.js';

/** Options of one acquisition. @publicApi */
export interface LockOptions {
  /**
   * How long to wait while the lock is held by another owner, at most 2³¹ − 1 ms (24 days). 0: try once. `Infinity`:
   * for ever. Default: the module's `waitTime`, which is for ever unless it is set.
   */
  readonly waitTime?: Duration;
  /**
   * How long to wait while Redis does not answer, before LockUnavailableError: it is counted from the first request
   * that had no answer, or from the call where that came later. `Infinity`: until Redis is back. Default: the module's
   * `outageTimeout`, 10 s. (`waitTime` bounds the wait for a busy lock and for Redis together.)
   */
  readonly outageTimeout?: Duration;
  /**
   * How long Redis keeps the lock: a fixed time that is never extended, from 100 ms to 10 years. Default: for as long
   * as it is held, renewed by the watchdog. Re-entry shares the lease of the outer lock: its own leaseTime is not
   * applied, and if the outer lease is fixed, it ends with it. (The read lock of a writer is a separate lock with its
   * own lease.)
   */
  readonly leaseTime?: Duration;
  /** Default `'reentrant'`. */
  readonly type?: LockType;
  /** Ends the wait with LockAbortedError. It does not affect a lease that was granted. */
  readonly signal?: AbortSignal;
  /**
   * What happens when the lease is lost under a body that ends well: `'throw'` LockLostError, or `'warn'`. Default: the
   * module's `onLost`.
   */
  readonly onLost?: 'throw' | 'warn';
  /**
   * What this acquisition is called in events, metrics and client records: a word for its purpose, of at most 200
   * characters, that does not differ from call to call as the lock's name does. Default: none. (The decorator sets it
   * for its methods.)
   */
  readonly group?: string;
}

/** What an acquisition is for, as far as is known: see `HoldRecord`. */
export interface Purpose {
  readonly group: string;
  readonly method: string;
  /** If the lock is busy, the decorator's `onBusy` answers instead of an error. */
  readonly skips: boolean;
}

/** {@link LockOptions} with every default filled in and every value checked. */
export interface AcquisitionTerms extends Purpose {
  readonly type: LockType;
  readonly waitTime: Milliseconds;
  readonly outageTimeout: Milliseconds;
  readonly leaseTime: Milliseconds;
  /** The leaseTime was given by the user: the watchdog does not renew it. */
  readonly fixed: boolean;
  readonly signal: AbortSignal | undefined;
  readonly onLost: 'throw' | 'warn';
  /** The caller can do without this lock, so that its wait is no part of a deadlock. */
  readonly tentative: boolean;
}

/** The defaults of every service. */
export const DEFAULT_TERMS = {
  type: 'reentrant',
  fixed: false,
  signal: undefined,
  group: '',
  method: '',
  skips: false,
  tentative: false,
} satisfies Partial<AcquisitionTerms>;

export const LOCK_TYPES: readonly LockType[] = ['reentrant', 'fair', 'read', 'write', 'fenced'];
const OPTION_NAMES = ['waitTime', 'outageTimeout', 'leaseTime', 'type', 'signal', 'onLost', 'group'];
/** In characters. */
export const LONGEST_GROUP = 200;

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
  const { waitTime, outageTimeout, leaseTime, type = defaults.type, signal, onLost = defaults.onLost } = options;
  const { group = defaults.group } = options;
  if (!LOCK_TYPES.includes(type)) {
    throw new LockConfigurationError(`${what}: type is '${type}'; it must be one of ${LOCK_TYPES.join(', ')}`);
  }
  if (onLost !== 'throw' && onLost !== 'warn') {
    throw new LockConfigurationError(`${what}: onLost is '${onLost}'; it must be 'throw' or 'warn'`);
  }
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
    throw new LockConfigurationError(`${what}: signal is not an AbortSignal`);
  }
  if (typeof group !== 'string' || group.length > LONGEST_GROUP) {
    throw new LockConfigurationError(`${what}: group must be a string of at most ${LONGEST_GROUP} characters`);
  }
  return {
    type,
    group,
    method: defaults.method,
    skips: defaults.skips,
    tentative: defaults.tentative,
    onLost,
    signal,
    fixed: leaseTime !== undefined,
    waitTime: waitTime === undefined ? defaults.waitTime : toWaitTime(waitTime, `${what}: waitTime`),
    outageTimeout:
      outageTimeout === undefined ? defaults.outageTimeout : toWaitTime(outageTimeout, `${what}: outageTimeout`),
    leaseTime: leaseTime === undefined ? defaults.leaseTime : toLeaseTime(leaseTime, `${what}: leaseTime`),
  };
}
