import { LockConfigurationError, LockKeyError } from '../../engine/errors.js';
import { toLockName } from '../../engine/lock-name.js';
import { toKeyPart, whyNoKeyPart } from './key-part.js';
import { type Found, follow, followAll, type Invocation } from './key-path.js';
import { type Expression, parseTemplate } from './key-template-parser.js';

/** Gives the lock names for one call of the method; whoever acquires them checks their length and form. */
export type NamesOf = (invocation: Invocation) => string | readonly string[];

/**
 * Compiles a key template: literal text, taken verbatim, and `#<path>`, filled in at each call. Every value of a path with `[*]`
 * gives a name of its own; there is room for one such path in a template, because with two it would be a guess whether
 * they go in pairs or all with all.
 *
 * @param where how errors begin: `OrdersService.pay`
 * @param method name of the method, for `#<method>`
 * @throws LockConfigurationError when the template can give no lock name
 */
export function compileTemplate(template: string, where: string, method: string): NamesOf {
  const parts = parseTemplate(template, where);
  checkLiterals(template, parts, where);
  const many = parts.filter((part) => typeof part !== 'string' && isMany(part));
  if (many.length > 1) {
    throw new LockConfigurationError(
      `${where}: the key '${template}' has more than one path with [*]; use a key function instead`,
    );
  }
  if (parts.every((part) => typeof part === 'string')) return () => template;
  if (parts.every((part) => typeof part === 'string' || part.root === 'method')) {
    const name = parts.map((part) => (typeof part === 'string' ? part : toKeyPart(method))).join('');
    return () => name;
  }
  return many.length === 0 ? one(template, parts, where) : each(template, parts, where);
}

function one(template: string, parts: readonly (string | Expression)[], where: string): NamesOf {
  return (invocation) => {
    let name = '';
    for (const part of parts)
      name += typeof part === 'string' ? part : fill(part, follow(part, invocation), template, where);
    return name;
  };
}

function each(template: string, parts: readonly (string | Expression)[], where: string): NamesOf {
  return (invocation) => {
    let names: readonly string[] = [''];
    for (const part of parts) {
      const texts = textsOf(part, invocation, template, where);
      names = names.flatMap((name) => texts.map((text) => name + text));
    }
    return names;
  };
}

function textsOf(
  part: string | Expression,
  invocation: Invocation,
  template: string,
  where: string,
): readonly string[] {
  if (typeof part === 'string') return [part];
  if (!isMany(part)) return [fill(part, follow(part, invocation), template, where)];
  const found = followAll(part, invocation);
  if (found.length === 0)
    throw new LockKeyError(
      `${where}: #<${part.path}> of the key '${template}' is an empty list: there is nothing to lock`,
      template,
    );
  return found.map((value) => fill(part, value, template, where));
}

function fill(expression: Expression, found: Found, template: string, where: string): string {
  const reason = 'missing' in found ? found.missing : whyNoKeyPart(found.value);
  if (reason === undefined) return toKeyPart((found as { value: string }).value);
  const what = 'missing' in found ? reason : `it ${reason}`;
  throw new LockKeyError(
    `${where}: #<${expression.path}> of the key '${template}' cannot be filled in: ${what}`,
    template,
  );
}

/** Filled-in parts are never empty and bring no braces along: so one sample shows whether the template's own text is in order. */
function checkLiterals(template: string, parts: readonly (string | Expression)[], where: string): void {
  try {
    toLockName(
      parts.map((part) => (typeof part === 'string' ? part : 'x')).join(''),
      `${where}: the key '${template}'`,
    );
  } catch (error) {
    throw new LockConfigurationError((error as Error).message, { cause: error });
  }
}

function isMany(expression: Expression): boolean {
  return expression.steps.some((step) => step.kind === 'every');
}
