import { LockConfigurationError } from '../../engine/errors.js';
import { LOCK_TYPES } from '../../engine/terms/lock-options.js';
import type { DistributedLockOptions, LockKey, ReturnKind } from './distributed-lock.options.js';
import { nearestName } from './nearest-name.js';

type OptionName = keyof DistributedLockOptions;

const OPTION_NAMES: readonly string[] = [
  'key',
  'waitTime',
  'outageTimeout',
  'leaseTime',
  'type',
  'service',
  'onBusy',
  'holdAtLeast',
  'onLost',
  'returns',
] satisfies OptionName[];

const CHOICES: readonly (readonly [OptionName, readonly string[]])[] = [
  ['type', LOCK_TYPES],
  ['onLost', ['throw', 'warn']],
  ['returns', ['promise', 'observable', 'iterable'] satisfies ReturnKind[]],
];

/**
 * Turns what `@DistributedLock` was given into options, and checks their names and choices.
 *
 * @param where how errors name the method: `OrdersService.ship`
 * @throws LockConfigurationError naming the option that is wrong
 */
export function toDecoratorOptions(given: LockKey | DistributedLockOptions, where: string): DistributedLockOptions {
  if (isKey(given)) return { key: given };
  if (typeof given !== 'object' || given === null) {
    throw new LockConfigurationError(`${where}: @DistributedLock needs a key, or options with a key`);
  }
  for (const option of Object.keys(given)) if (!OPTION_NAMES.includes(option)) throw unknownOption(option, where);
  for (const [option, values] of CHOICES) {
    const value = given[option];
    if (value === undefined || values.includes(value as string)) continue;
    throw new LockConfigurationError(
      `${where}: ${option} is ${describeValue(value)}; it must be one of ${values.join(', ')}`,
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

/** How errors show a value that is not what it should be. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 40)}'`;
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : String(value);
}

function isKey(given: LockKey | DistributedLockOptions): given is LockKey {
  return typeof given === 'string' || typeof given === 'function' || Array.isArray(given);
}

function unknownOption(option: string, where: string): LockConfigurationError {
  const nearest = nearestName(option, OPTION_NAMES);
  const advice = nearest === undefined ? `there are ${OPTION_NAMES.join(', ')}` : `did you mean '${nearest}'?`;
  return new LockConfigurationError(`${where}: @DistributedLock has no option '${option}'; ${advice}`);
}
