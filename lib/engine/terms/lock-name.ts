import { LockKeyError } from '../errors.js';

/** A lock name that has been checked, see {@link toLockName}. */
export type LockName = string;

/** The longest key in Redis, prefix included, in UTF-8 bytes. */
export const MAX_KEY_BYTES = 1024;

/**
 * Checks one lock name.
 *
 * @param what how the error begins: `acquire()`, `OrderService.place`
 * @throws LockKeyError when it is not a string, empty, too long, or its braces are unbalanced
 */
export function toLockName(value: unknown, what: string): LockName {
  if (typeof value !== 'string') {
    throw new LockKeyError(`${what}: a lock name must be a string, but it is ${describe(value)}`, '');
  }
  if (value.length === 0) throw new LockKeyError(`${what}: the lock name is empty`, '');
  // A UTF-16 unit takes at most three bytes: most names need not be counted.
  if (value.length * 3 > MAX_KEY_BYTES) {
    const bytes = Buffer.byteLength(value);
    if (bytes > MAX_KEY_BYTES) {
      const start = value.slice(0, 40);
      throw new LockKeyError(
        `${what}: the lock name '${start}…' has ${bytes} bytes; ${MAX_KEY_BYTES} is the limit: lock by an id, or by a hash of the content`,
        start,
      );
    }
  }
  if (!bracesPair(value)) {
    throw new LockKeyError(
      `${what}: the lock name '${value}' has an unbalanced or empty brace: Redis Cluster hashes the part inside the first {…}, so that the lock's keys would be in different slots. Encode braces that come from data`,
      value,
    );
  }
  return value;
}

/** A part of a name that says that a value was missing, or was no text. Colons and braces separate parts. */
const SUSPICIOUS = /(?:^|[:{])(undefined|null|NaN|\[object Object\])(?:$|[:}])/;

/**
 * Refuses a name that somebody made from a value that was missing: all callers without the value would share one lock,
 * silently.
 *
 * @throws LockKeyError which begins with `what`
 */
export function refuseSuspiciousName(name: LockName, what: string): void {
  const part = SUSPICIOUS.exec(name)?.[1];
  if (part !== undefined)
    throw new LockKeyError(
      `${what}: the lock name '${name}' has the part '${part}': a value was missing when the name was made, and all such callers would share one lock. For names that mean it, set allowSuspiciousNames of RedisLockModule`,
      name,
    );
}

/**
 * The key of a lock in the backend.
 *
 * @param name a name that was checked
 * @throws LockKeyError, which begins with `what`, when the prefix makes it too long
 */
export function toKey(prefix: string, name: LockName, what: string): string {
  const key = prefix + name;
  if (key.length * 3 > MAX_KEY_BYTES && Buffer.byteLength(key) > MAX_KEY_BYTES) toLockName(key, what);
  return key;
}

/**
 * Checks a list of names: sorted, each once.
 *
 * @throws LockKeyError when the list is empty or a name in it is bad
 */
export function toLockNames(values: readonly unknown[], what: string): readonly LockName[] {
  if (values.length === 0)
    throw new LockKeyError(`${what}: the list of lock names is empty; nothing would be locked`, '');
  // Not `map`, which skips the holes of an array, so that they would not be checked.
  return [...new Set(Array.from(values, (value) => toLockName(value, what)))].sort();
}

/** Whether every brace has its partner and none is empty. */
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
