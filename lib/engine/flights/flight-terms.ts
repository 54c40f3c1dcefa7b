import { LockConfigurationError } from '../errors.js';
import { type Duration, MAX_LEASE_TIME, toMilliseconds } from '../terms/duration.js';
import { type AcquisitionTerms, DEFAULT_TERMS, type LockOptions, toTerms } from '../terms/lock-options.js';

/** In bytes. */
const DEFAULT_MAX_SIZE = 1024 * 1024;
/** In bytes: what Redis takes for one value. */
const LARGEST_MAX_SIZE = 512 * 1024 * 1024;

/**
 * What comes out of JSON as it went in: strings, finite numbers, booleans, `null`, lists, and objects of these without
 * methods. `T` is a JSON type if it extends `Json<T>`; a `Date`, a `Map` or a property that may be `undefined` does not.
 *
 * @publicApi
 */
export type Json<T> = T extends string | number | boolean | null
  ? T
  : T extends bigint | symbol | undefined | ((...args: never[]) => unknown)
    ? never
    : { [K in keyof T]: Json<T[K]> };

/**
 * What a single flight returns without a serializer: `T` if that is a JSON type or nothing at all, else `never`.
 *
 * @publicApi
 */
// biome-ignore lint/suspicious/noConfusingVoidType: a body may return nothing
export type JsonResult<T> = [T] extends [void] ? T : T extends Json<T> ? T : never;

/** Options of a single flight. @publicApi */
export interface FlightOptions extends Omit<LockOptions, 'type' | 'release'> {
  /**
   * For how long callers get a result that is there already, up to 10 years. A caller gets a result that ended at most
   * this long ago, and never one that its own run has kept for less. Default 0: only callers that asked while it was
   * computed get it.
   */
  readonly keepFor?: Duration;
  /**
   * The size of the largest result that is stored, in bytes, up to 512 MiB. A larger one goes to the callers of the
   * process that has computed it, with a warning; others run for themselves, one after the other. Default 1 MiB.
   */
  readonly maxSize?: number;
}

/** How results that are not JSON travel. Give both functions. @publicApi */
export interface FlightSerializer<T> {
  /** Makes a text of the result. */
  readonly serialize: (result: T) => string;
  /** Makes a result of the text. It gets what `serialize` returned, here or in another process, or another version. */
  readonly deserialize: (text: string) => T;
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
 * @param toTerms checks those that it has in common with locks
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
  if ('release' in options) refuse(what, "there is no option 'release': the result is there when the release is");
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

/** The text of a result, as all callers get it. @throws LockConfigurationError */
export function textOf(result: unknown, { serializer }: FlightTerms, name: string): string {
  if (serializer === JSON_TEXT) {
    const problem = result === undefined ? undefined : changesOnTheWay(result, 'result', new Set());
    if (problem !== undefined)
      throw new LockConfigurationError(
        `The result of the single flight '${name}' is not JSON: ${problem}. Return plain data, or give serialize and deserialize`,
      );
  }
  let text: unknown;
  try {
    text = serializer.serialize(result);
  } catch (cause) {
    throw new LockConfigurationError(`serialize of the single flight '${name}' failed: ${String(cause)}`, { cause });
  }
  if (typeof text === 'string') return text;
  throw new LockConfigurationError(`serialize of the single flight '${name}' must return a string`);
}

/** The result that a text stands for. @throws LockConfigurationError when it cannot be read */
export function resultOf(text: string, { serializer }: FlightTerms, name: string): unknown {
  try {
    return serializer.deserialize(text);
  } catch (cause) {
    const advice =
      'It may come from another version of this application, or from somebody else: forgetResult() deletes it';
    throw new LockConfigurationError(`The result of the single flight '${name}' could not be read. ${advice}`, {
      cause,
    });
  }
}

/** JSON, and an empty text for `undefined`. */
const JSON_TEXT: FlightSerializer<unknown> = {
  serialize: (result) => (result === undefined ? '' : JSON.stringify(result)),
  deserialize: (text) => (text === '' ? undefined : JSON.parse(text)),
};

/** What JSON would change, and where; undefined: nothing. */
function changesOnTheWay(value: unknown, path: string, around: Set<object>): string | undefined {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return undefined;
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : `${path} is ${value}`;
  if (typeof value !== 'object')
    return `${path} is ${typeof value === 'undefined' ? 'undefined' : `a ${typeof value}`}`;
  if (around.has(value)) return `${path} contains itself`;
  const isList = Array.isArray(value);
  const prototype = Object.getPrototypeOf(value);
  if (!isList && !isPlain(prototype)) return `${path} is a ${prototype.constructor?.name || 'class instance'}`;
  if ('toJSON' in value) return `${path} has a toJSON`;
  around.add(value);
  const entries = isList ? Array.from(value, (item, i) => [`[${i}]`, item] as const) : namedEntries(value);
  for (const [name, item] of entries) {
    const problem = changesOnTheWay(item, `${path}${name}`, around);
    if (problem !== undefined) return problem;
  }
  around.delete(value);
  return undefined;
}

function namedEntries(value: object): (readonly [name: string, value: unknown])[] {
  return Object.entries(value).map(([name, item]) => [`.${name}`, item]);
}

/** An instance of a class without methods loses nothing but its class. */
function isPlain(prototype: object | null): boolean {
  if (prototype === null || prototype === Object.prototype) return true;
  const isBare = Object.getOwnPropertyNames(prototype).every((name) => name === 'constructor');
  return isBare && isPlain(Object.getPrototypeOf(prototype));
}

function refuse(what: string, why: string): never {
  throw new LockConfigurationError(`${what}: ${why}`);
}
