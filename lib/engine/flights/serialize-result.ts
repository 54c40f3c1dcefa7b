import { LockConfigurationError } from '../errors.js';

/**
 * Values that are the same after JSON as before: strings, finite numbers, booleans, `null`, arrays, and objects of
 * these without methods. `T` is a JSON type if it extends `Json<T>`; a `Date`, a `Map` or a property that may be
 * `undefined` does not.
 *
 * @publicApi
 */
export type Json<T> = T extends string | number | boolean | null
  ? T
  : T extends bigint | symbol | undefined | ((...args: never[]) => unknown)
    ? never
    : { [K in keyof T]: Json<T[K]> };

/**
 * The result type of a single flight without a serializer: `T` if it is a JSON type or `void`, and `never` otherwise.
 *
 * @publicApi
 */
// biome-ignore lint/suspicious/noConfusingVoidType: a body may return nothing
export type JsonResult<T> = [T] extends [void] ? T : T extends Json<T> ? T : never;

/** Converts results that are not JSON to text and back. Both functions are required. @publicApi */
export interface FlightSerializer<T> {
  /** Converts a result to text. */
  readonly serialize: (result: T) => string;
  /**
   * Converts the text to a result. The text was returned by `serialize` in this process, in another one, or in another
   * version of the application.
   */
  readonly deserialize: (text: string) => T;
}

/** JSON, and an empty text for `undefined`. */
export const JSON_TEXT: FlightSerializer<unknown> = {
  serialize: (result) => (result === undefined ? '' : JSON.stringify(result)),
  deserialize: (text) => (text === '' ? undefined : JSON.parse(text)),
};

/** Converts a result to the text that is shared with all callers. @throws LockConfigurationError */
export function textOf(result: unknown, serializer: FlightSerializer<unknown>, name: string): string {
  if (serializer === JSON_TEXT) {
    const problem = result === undefined ? undefined : whatJsonWouldChange(result, 'result', new Set());
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

/** Reads a result from its text. @throws LockConfigurationError when it cannot be read */
export function resultOf(text: string, serializer: FlightSerializer<unknown>, name: string): unknown {
  try {
    return serializer.deserialize(text);
  } catch (cause) {
    const advice =
      'It may come from another version of this application, or from somebody else. forgetResult() deletes it';
    throw new LockConfigurationError(`The result of the single flight '${name}' could not be read. ${advice}`, {
      cause,
    });
  }
}

/** What JSON would change, and where; undefined if nothing. */
function whatJsonWouldChange(value: unknown, path: string, around: Set<object>): string | undefined {
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
    const problem = whatJsonWouldChange(item, `${path}${name}`, around);
    if (problem !== undefined) return problem;
  }
  around.delete(value);
  return undefined;
}

function namedEntries(value: object): (readonly [name: string, value: unknown])[] {
  return Object.entries(value).map(([name, item]) => [`.${name}`, item]);
}

/** An instance of a class without methods loses only its class. */
function isPlain(prototype: object | null): boolean {
  if (prototype === null || prototype === Object.prototype) return true;
  const isBare = Object.getOwnPropertyNames(prototype).every((name) => name === 'constructor');
  return isBare && isPlain(Object.getPrototypeOf(prototype));
}
