import { LockConfigurationError } from '../../engine/errors.js';
import { assertMayNotConfirm } from '../../engine/terms/assert-supported.js';
import { ON_LOST, RELEASE, TYPE } from '../../engine/terms/lock-options.js';
import {
  CHECKED_LATER,
  checkOptions,
  type OptionTable,
  oneOf,
  rule,
  TRUE_OR_FALSE,
} from '../../engine/terms/option-table.js';
import type { DistributedLockOptions, LockKey } from './distributed-lock.options.js';

/** What all decorators of methods have in common. */
export const METHOD_OPTIONS = {
  key: CHECKED_LATER,
  service: rule('the name of a RedisLockModule', (value) => typeof value === 'string' && value !== ''),
  signal: rule(
    'a function that returns an AbortSignal, because each call has its own',
    (value) => typeof value === 'function',
  ),
};

const OPTIONS: OptionTable<DistributedLockOptions> = {
  ...METHOD_OPTIONS,
  waitTime: CHECKED_LATER,
  outageTimeout: CHECKED_LATER,
  leaseTime: CHECKED_LATER,
  type: TYPE,
  permits: CHECKED_LATER,
  onBusy: rule(
    "'throw', 'skip', 'newest' or a function that answers: (busy, ...args) => …",
    (value) => ['throw', 'skip', 'newest'].includes(value as string) || typeof value === 'function',
  ),
  holdAtLeast: CHECKED_LATER,
  holdAtMost: CHECKED_LATER,
  onLost: ON_LOST,
  release: RELEASE,
  reentry: TRUE_OR_FALSE,
  returns: oneOf('promise', 'observable', 'iterable'),
};

/**
 * Converts the argument of `@DistributedLock` into options, and checks them.
 *
 * @param where how errors name the method: `OrdersService.ship`
 * @throws LockConfigurationError naming the option that is wrong
 */
export function toDecoratorOptions(given: LockKey | DistributedLockOptions, where: string): DistributedLockOptions {
  const options = toOptions<DistributedLockOptions>(given, OPTIONS, '@DistributedLock', where);
  if (options.release === 'background') assertMayNotConfirm(undefined, options.onLost, where);
  return options;
}

/**
 * Turns what a decorator was given, a key or options, into options, and checks them.
 *
 * @param decorator how errors name it: `@DistributedLock`
 * @throws LockConfigurationError naming the option that is wrong
 */
export function toOptions<Options extends { readonly key: LockKey }>(
  given: LockKey | Options,
  table: OptionTable<Options>,
  decorator: string,
  where: string,
): Pick<Options, 'key'> & Partial<Options> {
  if (isKey(given)) return { key: given } as Options;
  if (typeof given !== 'object' || given === null)
    throw new LockConfigurationError(`${where}: ${decorator} needs a key, or options with a key`);
  checkOptions(given, table, `${where}: ${decorator}`);
  return given;
}

function isKey(given: unknown): given is LockKey {
  return typeof given === 'string' || typeof given === 'function' || Array.isArray(given);
}
