import { LockConfigurationError, LockKeyError } from '../../engine/errors.js';
import { escapedNames } from '../../engine/terms/escaped-names.js';
import { toKeyPart, whyNotKeyPart } from '../../engine/terms/key-part.js';
import { toLockName } from '../../engine/terms/lock-name.js';
import { type Found, follow, followAll, type Invocation } from './key-path.js';
import { type Expression, parseTemplate } from './key-template-parser.js';

/** Returns the lock names for one call of the method. Their length and form are checked when they are acquired. */
export type NamesOf = (invocation: Invocation) => string | readonly string[];

/**
 * Compiles a key template: literal text, which is taken verbatim, and `#<path>`, which is filled in at each call. A
 * path with `[*]` makes a name for each of its values. A template has at most one such path: with two, it would be
 * unclear whether to combine them in pairs or all with all.
 *
 * @param where how errors begin: `OrdersService.pay`
 * @param method name of the method, for `#<method>`
 * @param parameters how many parameters the method has, if that is known
 * @throws LockConfigurationError when the template cannot make a lock name
 */
export function compileTemplate(
  template: string,
  where: string,
  method: string,
  parameters = Number.POSITIVE_INFINITY,
): NamesOf {
  const parts = parseTemplate(template, where);
  checkLiterals(template, parts, where);
  checkParameters(template, parts, where, parameters);
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

/** A name, and what it would be if nothing was escaped in it. */
interface Filled {
  readonly name: string;
  readonly plain: string;
}

function one(template: string, parts: readonly (string | Expression)[], where: string): NamesOf {
  return (invocation) => {
    let name = '';
    let plain = '';
    for (const part of parts) {
      const text = typeof part === 'string' ? part : textOf(part, follow(part, invocation), template, where);
      name += typeof part === 'string' ? part : toKeyPart(text);
      plain += text;
    }
    return noted(name, plain, where);
  };
}

function each(template: string, parts: readonly (string | Expression)[], where: string): NamesOf {
  return (invocation) => {
    let names: readonly Filled[] = [{ name: '', plain: '' }];
    for (const part of parts) {
      const filled = filledWith(part, invocation, template, where);
      names = names.flatMap(({ name, plain }) =>
        filled.map((next) => ({ name: name + next.name, plain: plain + next.plain })),
      );
    }
    return names.map(({ name, plain }) => noted(name, plain, where));
  };
}

function noted(name: string, plain: string, where: string): string {
  escapedNames.note(name, plain, () => `the template of ${where}`);
  return name;
}

function filledWith(
  part: string | Expression,
  invocation: Invocation,
  template: string,
  where: string,
): readonly Filled[] {
  if (typeof part === 'string') return [{ name: part, plain: part }];
  const filled = (plain: string) => ({ name: toKeyPart(plain), plain });
  if (!isMany(part)) return [filled(textOf(part, follow(part, invocation), template, where))];
  const found = followAll(part, invocation);
  if (found.length === 0)
    throw new LockKeyError(
      `${where}: #<${part.path}> of the key '${template}' is an empty list: there is nothing to lock`,
      template,
    );
  return found.map((value) => filled(textOf(part, value, template, where)));
}

function textOf(expression: Expression, found: Found, template: string, where: string): string {
  const reason = 'missing' in found ? found.missing : whyNotKeyPart(found.value);
  if (reason === undefined) return String((found as { value: unknown }).value);
  const what = 'missing' in found ? reason : `it ${reason}`;
  throw new LockKeyError(
    `${where}: #<${expression.path}> of the key '${template}' cannot be filled in: ${what}`,
    template,
  );
}

/**
 * Parts that are filled in are never empty and have no braces, so one sample shows whether the template's own text is
 * valid.
 */
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

/** Refuses an argument that the method does not have. */
function checkParameters(
  template: string,
  parts: readonly (string | Expression)[],
  where: string,
  parameters: number,
): void {
  for (const part of parts) {
    if (typeof part === 'string' || part.root !== 'args') continue;
    const [first] = part.steps;
    if (first?.kind === 'index' && first.index >= parameters)
      throw new LockConfigurationError(
        `${where}: #<${part.path}> of the key '${template}' cannot be filled in, because the method has ${parameters} parameter${parameters === 1 ? '' : 's'}, and the first one is #<args[0]>`,
      );
  }
}

function isMany(expression: Expression): boolean {
  return expression.steps.some((step) => step.kind === 'every');
}
