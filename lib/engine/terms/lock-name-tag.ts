import { LockKeyError } from '../errors.js';
import { toKeyPart, whyNotKeyPart } from './key-part.js';

/** A value that can be a part of a lock's name. @publicApi */
export type LockNamePart = string | number | bigint | boolean;

/**
 * The name that the key template of a decorator makes of the same parts. In a template and in this tag, `%`, `:`,
 * braces and control characters of a part are percent-encoded, so that no part looks like two. A plain string takes
 * them as they are, so for the id `a:b`, `` `order:${id}` `` and `@DistributedLock('order:#<args[0]>')` are two locks.
 *
 * ```ts
 * await locks.withLock(lockName`order:${id}`, () => ship(id)); // excludes @DistributedLock('order:#<args[0]>')
 * ```
 *
 * @returns a whole name, without the keyPrefix of a service. Do not use it as a part of another name
 * @throws LockKeyError for a part that is undefined, null, NaN, an object, an empty or too long string
 * @publicApi
 */
export function lockName(literals: TemplateStringsArray, ...parts: readonly LockNamePart[]): string {
  return literals
    .map((literal: string | undefined, n) => {
      if (literal === undefined) throw unusable(literals, `the text before part ${n + 1} has an invalid escape`);
      if (n === parts.length) return literal;
      const reason = whyNotKeyPart(parts[n]);
      if (reason !== undefined) throw unusable(literals, `part ${n + 1} ${reason}`);
      return literal + toKeyPart(parts[n] as LockNamePart);
    })
    .join('');
}

function unusable({ raw }: TemplateStringsArray, why: string): LockKeyError {
  const template = raw.join(`\${…}`);
  return new LockKeyError(`lockName of '${template}': ${why}`, template);
}
