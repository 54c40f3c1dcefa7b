import { LockConfigurationError } from '../errors.js';
import { type Duration, MAX_LEASE_TIME, toMilliseconds } from '../terms/duration.js';
import { type AcquisitionTerms, DEFAULT_TERMS, type LockOptions, toTerms } from '../terms/lock-options.js';
import { type FlightSerializer, JSON_TEXT } from './serialize-result.js';

/** In bytes. */
const DEFAULT_MAX_SIZE = 1024 * 1024;
/** The largest value that Redis accepts, in bytes. */
const LARGEST_MAX_SIZE = 512 * 1024 * 1024;

/** Options of a single flight. @publicApi */
export interface FlightOptions extends Omit<LockOptions, 'type' | 'permits' | 'newest' | 'release' | 'holdAtMost'> {
  /**
   * How long a finished result is given to later callers, up to 10 years. A caller gets a result whose run ended at
   * most this long ago, and no longer ago than the `keepFor` of that run. Default 0: only callers that asked while the
   * result was being computed get it.
   */
  readonly keepFor?: Duration;
  /**
   * The size of the largest result that is stored, in bytes, up to 512 MiB. A larger one is given only to callers of
   * the process that computed it, with a warning. Callers of other processes run the body themselves, one after
   * another. Default 1 MiB.
   */
  readonly maxSize?: number;
}

/** Options of one single flight, checked. */
export interface FlightTerms extends AcquisitionTerms {
  /** In milliseconds. */
  readonly keepFor: number;
  /** In bytes. */
  readonly maxSize: number;
  readonly serializer: FlightSerializer<unknown>;
}

const OWN_OPTIONS = ['keepFor', 'maxSize', 'serialize', 'deserialize'];

/**
 * Checks the options of a single flight.
 *
 * @param what the name of the call in errors
 * @param toTerms checks the options that single flights have in common with locks
 * @throws LockConfigurationError naming the invalid option
 */
export function toFlightTerms(
  options: (FlightOptions & Partial<FlightSerializer<unknown>>) | undefined,
  what: string,
  toTerms: (options: LockOptions) => AcquisitionTerms,
): FlightTerms {
  if (typeof options !== 'object' || options === null) {
    if (options !== undefined) refuse(what, `the options must be an object, but they are ${String(options)}`);
    options = {};
  }
  if ('type' in options) refuse(what, "there is no option 'type': a single flight has no lock types");
  if ('newest' in options) refuse(what, "there is no option 'newest', because all callers get the result");
  if ('permits' in options) refuse(what, "there is no option 'permits', because one call computes the result");
  if ('release' in options)
    refuse(what, "there is no option 'release', because other callers get the result only with the release");
  if ('holdAtMost' in options)
    refuse(what, "there is no option 'holdAtMost', because other callers wait for the result");
  const { keepFor = 0, maxSize = DEFAULT_MAX_SIZE, serialize, deserialize } = options;
  const others = Object.entries(options).filter(([option]) => !OWN_OPTIONS.includes(option));
  if (!Number.isSafeInteger(maxSize) || maxSize < 0 || maxSize > LARGEST_MAX_SIZE)
    refuse(what, `maxSize is ${String(maxSize)}; it must be a whole number of bytes from 0 to ${LARGEST_MAX_SIZE}`);
  const given = [serialize, deserialize].filter((part) => part !== undefined);
  if (given.length === 1 || given.some((part) => typeof part !== 'function'))
    refuse(what, 'serialize and deserialize must be functions: give both or neither');
  return {
    ...toTerms(Object.fromEntries(others)),
    keepFor: toMilliseconds(keepFor, `${what}: keepFor`, 0, MAX_LEASE_TIME),
    maxSize,
    serializer: serialize && deserialize ? { serialize, deserialize } : JSON_TEXT,
  };
}

/**
 * Checks the options of a single flight before there is a service with defaults for them.
 *
 * @throws LockConfigurationError naming the invalid option
 */
export function checkFlightOptions(options: FlightOptions & Partial<FlightSerializer<unknown>>, what: string): void {
  const none = toMilliseconds(0, what, 0, 0);
  const times = { waitTime: none, outageTimeout: none, leaseTime: none };
  const defaults = { ...DEFAULT_TERMS, ...times, onLost: 'throw', release: 'confirmed' } as const;
  toFlightTerms(options, what, (others) => toTerms(others, defaults, what));
}

function refuse(what: string, why: string): never {
  throw new LockConfigurationError(`${what}: ${why}`);
}
