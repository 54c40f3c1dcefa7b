import { nearestName } from '../../backends/nearest-name.js';
import { LockConfigurationError } from '../errors.js';

/** What the value of an option must be. */
export interface Rule {
  /** The end of the sentence 'it must be'. */
  readonly expected: string;
  accepts(value: unknown): boolean;
}

/** All options of a call, each with its rule. The compiler refuses a table that lacks an option, or has another one. */
export type OptionTable<Options> = { readonly [Name in keyof Required<Options>]: Rule };

/** Names that are no options here, each with the end of a sentence that says why, or what to write instead. */
export type RefusedOptions = Readonly<Record<string, string>>;

/** For values that are checked where they are converted, such as durations. */
export const CHECKED_LATER: Rule = { expected: 'a value', accepts: () => true };

export const TRUE_OR_FALSE: Rule = { expected: 'true or false', accepts: (value) => typeof value === 'boolean' };

export const FUNCTION: Rule = { expected: 'a function', accepts: (value) => typeof value === 'function' };

export function oneOf(...choices: readonly string[]): Rule {
  const quoted = choices.map((choice) => `'${choice}'`);
  return {
    expected: `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`,
    accepts: (value) => choices.includes(value as string),
  };
}

export function wholeNumber(least: number, most?: number): Rule {
  return {
    expected: `a whole number ${most === undefined ? `of at least ${least}` : `from ${least} to ${most}`}`,
    accepts: (value) =>
      Number.isSafeInteger(value) &&
      (value as number) >= least &&
      (value as number) <= (most ?? Number.MAX_SAFE_INTEGER),
  };
}

/** A rule of its own: `expected` is the end of the sentence 'it must be'. */
export function rule(expected: string, accepts: (value: unknown) => boolean): Rule {
  return { expected, accepts };
}

/**
 * Refuses options that do not exist, because a misspelt option must not be ignored, and values that break a rule. An
 * option may be undefined.
 *
 * @param what the name of the call in errors: `list()`
 * @throws LockConfigurationError naming the option, and what to write instead
 */
export function checkOptions<Options extends object>(
  options: Options,
  table: OptionTable<Options>,
  what: string,
  refused: RefusedOptions = {},
): void {
  if (typeof options !== 'object' || options === null)
    throw new LockConfigurationError(`${what}: the options must be an object, but they are ${String(options)}`);
  for (const [option, value] of Object.entries(options)) {
    if (!Object.hasOwn(table, option)) throw unknownOption(option, Object.keys(table), what, refused);
    const { expected, accepts } = table[option as keyof Options];
    if (value === undefined || accepts(value)) continue;
    throw new LockConfigurationError(`${what}: ${option} is ${describeValue(value)}; it must be ${expected}`);
  }
}

/** How errors show an invalid value. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 40)}'`;
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}

function unknownOption(option: string, names: readonly string[], what: string, refused: RefusedOptions): Error {
  const nearest = nearestName(option, names);
  const advice = Object.hasOwn(refused, option)
    ? `: ${refused[option]}`
    : nearest === undefined
      ? `; there are ${names.join(', ')}`
      : `; did you mean '${nearest}'?`;
  return new LockConfigurationError(`${what}: there is no option '${option}'${advice}`);
}
