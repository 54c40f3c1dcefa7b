import { nearestName } from '../../backends/nearest-name.js';
import { LockConfigurationError } from '../../engine/errors.js';
import { assertMayNotConfirm } from '../../engine/terms/assert-supported.js';
import { LOCK_TYPES, RELEASE_MODES } from '../../engine/terms/lock-options.js';
import type { DistributedLockOptions, LockKey, ReturnKind } from './distributed-lock.options.js';

type OptionName = keyof DistributedLockOptions;

const OPTION_NAMES: readonly string[] = [
  'key',
  'waitTime',
  'signal',
  'outageTimeout',
  'leaseTime',
  'type',
  'permits',
  'service',
  'onBusy',
  'holdAtLeast',
  'holdAtMost',
  'onLost',
  'release',
  'reentry',
  'returns',
] satisfies OptionName[];

const CHOICES: readonly (readonly [OptionName, readonly unknown[]])[] = [
  ['type', LOCK_TYPES],
  ['onLost', ['throw', 'warn']],
  ['release', RELEASE_MODES],
  ['reentry', [true, false]],
  ['returns', ['promise', 'observable', 'iterable'] satisfies ReturnKind[]],
];

/**
 * Converts the argument of `@DistributedLock` into options, and checks their names and values.
 *
 * @param where how errors name the method: `OrdersService.ship`
 * @throws LockConfigurationError naming the option that is wrong
 */
export function toDecoratorOptions(given: LockKey | DistributedLockOptions, where: string): DistributedLockOptions {
  const options = toOptions<DistributedLockOptions>(given, OPTION_NAMES, CHOICES, '@DistributedLock', where);
  if (options.release === 'background') assertMayNotConfirm(undefined, options.onLost, where);
  return options;
}

/**
 * Turns what a decorator was given, a key or options, into options, and checks their names and choices.
 *
 * @param decorator how errors name it: `@DistributedLock`
 * @throws LockConfigurationError naming the option that is wrong
 */
export function toOptions<Options extends { readonly key: LockKey; readonly service?: string }>(
  given: LockKey | Options,
  names: readonly string[],
  choices: readonly (readonly [keyof Options, readonly unknown[]])[],
  decorator: string,
  where: string,
): Pick<Options, 'key'> & Partial<Options> {
  if (isKey(given)) return { key: given } as Options;
  if (typeof given !== 'object' || given === null) {
    throw new LockConfigurationError(`${where}: ${decorator} needs a key, or options with a key`);
  }
  for (const option of Object.keys(given))
    if (!names.includes(option)) throw unknownOption(option, names, decorator, where);
  for (const [option, values] of choices) {
    const value = given[option];
    if (value === undefined || values.includes(value)) continue;
    throw new LockConfigurationError(
      `${where}: ${String(option)} is ${describeValue(value)}; it must be one of ${values.join(', ')}`,
    );
  }
  const { service } = given;
  if (service !== undefined && (typeof service !== 'string' || service === '')) {
    throw new LockConfigurationError(
      `${where}: service is ${describeValue(service)}; it must be the name of a RedisLockModule`,
    );
  }
  return given;
}

/** How errors show an invalid value. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 40)}'`;
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : String(value);
}

function isKey(given: unknown): given is LockKey {
  return typeof given === 'string' || typeof given === 'function' || Array.isArray(given);
}

function unknownOption(
  option: string,
  names: readonly string[],
  decorator: string,
  where: string,
): LockConfigurationError {
  const nearest = nearestName(option, names);
  const advice = nearest === undefined ? `there are ${names.join(', ')}` : `did you mean '${nearest}'?`;
  return new LockConfigurationError(`${where}: ${decorator} has no option '${option}'; ${advice}`);
}
