import { LockConfigurationError } from '../errors.js';
import { type Duration, MAX_LEASE_TIME, toMilliseconds } from '../terms/duration.js';
import {
  type AcquisitionTerms,
  DEFAULT_TERMS,
  RUN_OPTIONS,
  type RunOptions,
  toRunTerms,
} from '../terms/lock-options.js';
import {
  CHECKED_LATER,
  checkOptions,
  FUNCTION,
  type OptionTable,
  type RefusedOptions,
  wholeNumber,
} from '../terms/option-table.js';
import { type FlightSerializer, JSON_TEXT } from './serialize-result.js';

/** In bytes. */
const DEFAULT_MAX_SIZE = 1024 * 1024;
/** The largest value that Redis accepts, in bytes. */
const LARGEST_MAX_SIZE = 512 * 1024 * 1024;

/** Options of a single flight. @publicApi */
export interface FlightOptions extends Omit<RunOptions, 'type' | 'permits' | 'newest' | 'release' | 'holdAtMost'> {
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

type Given = FlightOptions & Partial<FlightSerializer<unknown>>;

/** All but `signal` and `group`, which decorated methods have in a form of their own. */
const { type, permits, newest, release, holdAtMost, signal, group, ...SHARED } = RUN_OPTIONS;

export const FLIGHT_OPTIONS: OptionTable<Omit<Given, 'signal' | 'group'>> = {
  keepFor: CHECKED_LATER,
  maxSize: wholeNumber(0, LARGEST_MAX_SIZE),
  serialize: FUNCTION,
  deserialize: FUNCTION,
  ...SHARED,
};

const CALL_OPTIONS: OptionTable<Given> = { ...FLIGHT_OPTIONS, signal, group };

const NO_FLIGHT: RefusedOptions = {
  type: 'a single flight has no lock types',
  newest: 'all callers get the result',
  permits: 'one call computes the result',
  release: 'other callers get the result only with the release',
  holdAtMost: 'other callers wait for the result',
};

/**
 * Checks the options of a single flight.
 *
 * @param what the name of the call in errors
 * @param toTerms checks the options that single flights have in common with locks
 * @throws LockConfigurationError naming the invalid option
 */
export function toFlightTerms(
  options: Given | undefined,
  what: string,
  toTerms: (options: RunOptions) => AcquisitionTerms,
): FlightTerms {
  const given = options === undefined ? {} : options;
  checkOptions(given, CALL_OPTIONS, what, NO_FLIGHT);
  const { keepFor = 0, maxSize = DEFAULT_MAX_SIZE, serialize, deserialize, ...others } = given;
  if ((serialize === undefined) !== (deserialize === undefined))
    throw new LockConfigurationError(`${what}: serialize and deserialize belong together: give both or neither`);
  return {
    ...toTerms(others),
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
export function checkFlightOptions(options: Given, what: string): void {
  const none = toMilliseconds(0, what, 0, 0);
  const times = { waitTime: none, outageTimeout: none, leaseTime: none };
  const defaults = { ...DEFAULT_TERMS, ...times, onLost: 'throw', release: 'confirmed' } as const;
  toFlightTerms(options, what, (others) => toRunTerms(others, defaults, what));
}
