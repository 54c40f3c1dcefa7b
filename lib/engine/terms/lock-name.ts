import { LockKeyError } from '../errors.js';

/** A checked lock name, see {@link toLockName}. */
export type LockName = string;

/** The longest key in Redis, prefix included, in UTF-8 bytes. */
export const MAX_KEY_BYTES = 1024;

/**
 * Checks one lock name.
 *
 * @param what the beginning of the error: `acquire()`, `OrderService.place`
 * @throws LockKeyError when the name is not a string, is empty or too long, or has unbalanced braces or half a
 * character
 */
export function toLockName(value: unknown, what: string): LockName {
  if (typeof value !== 'string') {
    throw new LockKeyError(`${what}: a lock name must be a string, but it is ${describe(value)}`, '');
  }
  if (value.length === 0) throw new LockKeyError(`${what}: the lock name is empty`, '');
  // A UTF-16 unit has at most three bytes, so most names need not be measured.
  if (value.length * 3 > MAX_KEY_BYTES) {
    const bytes = Buffer.byteLength(value);
    if (bytes > MAX_KEY_BYTES) {
      const start = value.slice(0, 40);
      throw new LockKeyError(
        `${what}: the lock name '${start}…' has ${bytes} bytes; ${MAX_KEY_BYTES} is the limit. Lock by an id, or by a hash of the content`,
        start,
      );
    }
  }
  if (!bracesPair(value)) {
    throw new LockKeyError(
      `${what}: the lock name '${value}' has an unbalanced or empty brace: Redis Cluster hashes the part inside the first {…}, so the lock's keys would be in different slots. Encode braces in your data`,
      value,
    );
  }
  if (!value.isWellFormed()) {
    throw new LockKeyError(
      `${what}: the lock name ${JSON.stringify(value)} has half a character (a lone surrogate): in Redis, it would be the same name as others with such a half. Text was cut inside a character: cut it by characters (Array.from(text)), or lock by an id`,
      value,
    );
  }
  return value;
}

/** A part of a name, between colons or braces, that shows that a value was missing or was not text. */
const SUSPICIOUS = /(?:^|[:{])(undefined|null|NaN|\[object Object\])(?:$|[:}])/;

/**
 * Refuses a name that was built from a missing value. Without this, all callers without the value would silently share
 * one lock.
 *
 * @throws LockKeyError, with a message that begins with `what`
 */
export function refuseSuspiciousName(name: LockName, what: string): void {
  const part = SUSPICIOUS.exec(name)?.[1];
  if (part !== undefined)
    throw new LockKeyError(
      `${what}: the lock name '${name}' has the part '${part}': a value was missing when the name was built, and all such callers would share one lock. Check the value before you call, or, if the word is meant, put another sign than ':' beside it: 'order-${part}'`,
      name,
    );
}

/** The keys that a backend keeps beside locks begin with this, or with names of Redisson. */
const RESERVED = 'nestjs_redis_lock_';

/** Half of the longest key, so that at least half remains for the name. */
const MAX_PREFIX_BYTES = MAX_KEY_BYTES / 2;

/** Why this cannot be a `keyPrefix`, as the end of a sentence. */
export function prefixProblem(prefix: unknown): string | undefined {
  if (typeof prefix !== 'string' || !bracesPair(prefix)) return 'must be a string whose braces are balanced';
  if (!prefix.isWellFormed()) return 'has half a character (a lone surrogate)';
  if (prefix.startsWith(RESERVED))
    return `begins with '${RESERVED}', as the keys that this library keeps beside locks do, so that list() would miss all locks. Choose another one`;
  const bytes = Buffer.byteLength(prefix);
  return bytes > MAX_PREFIX_BYTES ? `has ${bytes} bytes; it may have at most ${MAX_PREFIX_BYTES}` : undefined;
}

/**
 * The key of a lock in the backend.
 *
 * @param name a checked name
 * @throws LockKeyError, with a message that begins with `what`, when the prefix makes the key too long, or the key is
 * only a part in braces
 */
export function toKey(prefix: string, name: LockName, what: string): string {
  const key = prefix + name;
  // What is kept beside a lock has the lock's key in braces, unless the key has some: {x} would share it with x.
  if (key.startsWith('{') && key.indexOf('}') === key.length - 1)
    throw new LockKeyError(
      `${what}: the lock name '${name}' is only a part in braces, and there is no keyPrefix: it would share its waiters and results with the lock '${key.slice(1, -1)}'. Choose another name, or a keyPrefix`,
      name,
    );
  if (key.length * 3 > MAX_KEY_BYTES && Buffer.byteLength(key) > MAX_KEY_BYTES) toLockName(key, what);
  return key;
}

/**
 * How many locks can be acquired together. All of them are acquired in one step, which keeps this process and Redis from
 * their other work. A list of names often has the length of a list that a user has sent.
 */
const MOST_NAMES = 10_000;

/**
 * Checks a list of names. Returns them sorted and without duplicates.
 *
 * @throws LockKeyError when the list is empty or too long, or contains an invalid name
 */
export function toLockNames(values: readonly unknown[], what: string): readonly LockName[] {
  if (values.length === 0)
    throw new LockKeyError(`${what}: the list of lock names is empty; nothing would be locked`, '');
  // Not `map`, which would skip the holes of an array and leave them unchecked.
  const names = new Set(Array.from(values, (value) => toLockName(value, what)));
  if (names.size > MOST_NAMES)
    throw new LockKeyError(
      `${what}: the list has ${names.size} lock names; ${MOST_NAMES} is the limit. Check the length of the input, or lock by what the names have in common`,
      '',
    );
  return [...names].sort();
}

/** One name, or several names that are acquired together: all or none. @publicApi */
export type LockNames = string | readonly string[];

/** Checks the names of a list. A single name is checked when its queue is created. */
export function toWanted(names: LockNames, what: string): LockNames {
  return typeof names === 'string' ? names : toLockNames(Array.isArray(names) ? names : [names], what);
}

/** The names as shown in errors. */
export function quoted(names: LockNames): string {
  return `'${[names].flat().join("', '").slice(0, 80)}'`;
}

/** Whether all braces are paired and none is empty. */
export function bracesPair(text: string): boolean {
  let depth = 0;
  for (let i = text.indexOf('{') === -1 ? text.indexOf('}') : 0; i >= 0 && i < text.length; i++) {
    const char = text[i];
    if (char === '{') {
      if (text[i + 1] === '}') return false;
      depth++;
    } else if (char === '}' && --depth < 0) return false;
  }
  return depth === 0;
}

function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array inside a list';
  return typeof value === 'object' || typeof value === 'function'
    ? `${typeof value} ${value.constructor?.name ?? ''}`.trim()
    : String(value);
}
