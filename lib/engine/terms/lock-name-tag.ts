import { LockKeyError } from '../errors.js';
import { escapedNames } from './escaped-names.js';
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
 * @throws LockKeyError for a part that is undefined, null, NaN, an object, an empty or too long string, for a text with
 * `#<`, and for a call with parentheses
 * @publicApi
 */
export function lockName(literals: TemplateStringsArray, ...parts: readonly LockNamePart[]): string {
  if (!Array.isArray(literals?.raw))
    throw new LockKeyError(
      `lockName is a tag of template literals. Write lockName\`order:\${id}\`, without parentheses`,
      String(literals),
    );
  let name = '';
  let plain = '';
  for (const [n, literal] of literals.entries()) {
    checkLiteral(literals, literal, n);
    name += literal;
    plain += literal;
    if (n === parts.length) break;
    const reason = whyNotKeyPart(parts[n]);
    if (reason !== undefined) throw unusable(literals, `part ${n + 1} ${reason}`);
    name += toKeyPart(parts[n] as LockNamePart);
    plain += parts[n];
  }
  escapedNames.note(name, plain, () => `lockName\`${templateOf(literals)}\``);
  return name;
}

/** The compiler makes an invalid escape undefined. */
function checkLiteral(literals: TemplateStringsArray, literal: string | undefined, n: number): void {
  if (literal === undefined) throw unusable(literals, `the text before part ${n + 1} has an invalid escape`);
  if (literal.includes('#<')) throw unusable(literals, `'#<' is filled in only in the key of a decorator: write \${…}`);
}

function unusable(literals: TemplateStringsArray, why: string): LockKeyError {
  const template = templateOf(literals);
  return new LockKeyError(`lockName of '${template}': ${why}`, template);
}

function templateOf({ raw }: TemplateStringsArray): string {
  return raw.join(`\${…}`);
}
