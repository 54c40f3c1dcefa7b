import { type ParseArgsConfig, parseArgs } from 'node:util';
import { prefixProblem } from '../engine/terms/lock-name.js';
import { usageError } from './command-error.js';

const OPTIONS = {
  url: { type: 'string' },
  cluster: { type: 'boolean' },
  prefix: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
  match: { type: 'string' },
  count: { type: 'string' },
  cursor: { type: 'string' },
  interval: { type: 'string' },
  yes: { type: 'boolean' },
  reason: { type: 'string' },
} satisfies ParseArgsConfig['options'];

type Option = keyof typeof OPTIONS;
type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values'];

const PLACE: readonly Option[] = ['url', 'cluster', 'prefix'];

/** The arguments of each verb, except those that say which Redis to use. */
const VERBS = {
  ls: { takesName: false, options: ['json', 'match', 'count', 'cursor'] },
  inspect: { takesName: true, options: ['json'] },
  watch: { takesName: false, options: ['match', 'interval'] },
  clients: { takesName: false, options: ['json'] },
  release: { takesName: true, options: ['json', 'yes', 'reason'] },
  doctor: { takesName: false, options: ['json'] },
} satisfies Record<string, { takesName: boolean; options: readonly Option[] }>;

export type Verb = keyof typeof VERBS;

/** A command line that was checked. */
export interface CommandLine {
  readonly verb: Verb;
  /** The name of the lock; `''` for verbs without one. */
  readonly name: string;
  readonly options: Values;
}

/** @throws CommandError that says what is wrong */
export function parseCommandLine(args: readonly string[]): CommandLine | 'help' | 'version' {
  const { values, positionals } = parse(args);
  const [verb, ...names] = positionals;
  if (values.help || verb === 'help') return 'help';
  if (values.version || verb === 'version') return 'version';
  const verbs = Object.keys(VERBS).join(', ');
  if (verb === undefined) throw usageError(`The command is missing: give one of ${verbs}`);
  // It may contain a password.
  if (/^rediss?:/.test(verb)) throw usageError(`A URL is given by --url or the variable REDIS_URL, not as a command`);
  if (!Object.hasOwn(VERBS, verb)) throw usageError(`There is no '${verb}': give one of ${verbs}`);
  const { takesName, options }: { takesName: boolean; options: readonly Option[] } = VERBS[verb as Verb];
  const stray = (Object.keys(values) as Option[]).find((option) => ![...PLACE, ...options].includes(option));
  if (stray !== undefined) throw usageError(`'${verb}' has no option --${stray}`);
  const problem = prefixProblem(values.prefix ?? '');
  if (problem !== undefined) throw usageError(`--prefix ${problem}`);
  const [name = '', ...others] = names;
  if (takesName && name === '') throw usageError(`'${verb}' needs the name of a lock`);
  if (!takesName && names.length > 0)
    throw usageError(`'${verb}' takes no name; patterns are given by --match, where there is one`);
  if (others.length > 0) throw usageError(`'${verb}' takes one name, but there are ${names.length}`);
  return { verb: verb as Verb, name, options: values };
}

/** Whether errors are printed as JSON, even if the rest of the command line is wrong. */
export function asksForJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end < 0 ? args.length : end).some((arg) => /^--json(=|$)/.test(arg));
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    // Only the first sentence, because the next one is about arguments that begin with a dash.
    throw usageError((error as Error).message.split(/\.(?:\s|$)/)[0]);
  }
}
