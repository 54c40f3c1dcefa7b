import { MAX_LEASE_TIME, type Milliseconds, toLeaseTime, toMilliseconds, toWaitTime } from '../../engine/duration.js';
import { LockConfigurationError } from '../../engine/errors.js';
import { LOCK_TYPES, type LockOptions } from '../../engine/lock-options.js';
import { compileTemplate, type NamesOf } from '../key-template/key-template.js';
import { getLockServiceToken } from '../redis-lock.constants.js';
import type { BusyAnswer, DistributedLockOptions, LockKey, Method, ReturnKind } from './distributed-lock.options.js';
import { nearestName } from './nearest-name.js';
import { returnKindOf } from './return-kind.js';

/** A decorated method, with everything about it decided and checked that can be before it is called. */
export interface LockedMethod {
  /** `OrdersService.ship` */
  readonly where: string;
  readonly name: string;
  readonly body: Method;
  readonly kind: ReturnKind;
  /** Property of the instance that holds the lock service. */
  readonly service: symbol;
  readonly serviceName: string | undefined;
  readonly namesOf: NamesOf;
  /** `undefined`: the service's defaults. */
  readonly acquisition: LockOptions | undefined;
  readonly hold: { readonly holdAtLeast?: Milliseconds };
  /** `undefined`: LockBusyError goes out. */
  readonly onBusy: BusyAnswer | undefined;
}

const OPTIONS = [
  'key',
  'waitTime',
  'leaseTime',
  'type',
  'service',
  'onBusy',
  'holdAtLeast',
  'onLost',
  'returns',
] as const;
const CHOICES: Partial<Record<(typeof OPTIONS)[number], readonly string[]>> = {
  type: LOCK_TYPES,
  onLost: ['throw', 'warn'],
  returns: ['promise', 'observable', 'iterable'] satisfies ReturnKind[],
};

/** @throws LockConfigurationError naming the method and the option that is wrong */
export function compileLockedMethod(
  prototype: object,
  key: string | symbol,
  body: Method,
  keyOrOptions: LockKey | DistributedLockOptions,
  where: string,
): LockedMethod {
  const options = toOptions(keyOrOptions, where);
  const name = String(key);
  return {
    where,
    name,
    body,
    kind: returnKindOf(prototype, key, body, options.returns, where),
    service: getLockServiceToken(options.service),
    serviceName: options.service,
    namesOf: toNamesOf(options.key, where, name),
    acquisition: toAcquisition(options, where),
    hold:
      options.holdAtLeast === undefined
        ? {}
        : { holdAtLeast: toMilliseconds(options.holdAtLeast, `${where}: holdAtLeast`, 0, MAX_LEASE_TIME) },
    onBusy: toBusyAnswer(options.onBusy, prototype, where),
  };
}

function toOptions(given: LockKey | DistributedLockOptions, where: string): DistributedLockOptions {
  if (typeof given === 'string' || typeof given === 'function' || Array.isArray(given))
    return { key: given as LockKey };
  if (typeof given !== 'object' || given === null) {
    throw new LockConfigurationError(`${where}: @DistributedLock needs a key, or options with a key`);
  }
  const options = given as DistributedLockOptions;
  for (const option of Object.keys(options)) {
    if ((OPTIONS as readonly string[]).includes(option)) continue;
    const nearest = nearestName(option, OPTIONS);
    const advice = nearest === undefined ? `there are ${OPTIONS.join(', ')}` : `did you mean '${nearest}'?`;
    throw new LockConfigurationError(`${where}: @DistributedLock has no option '${option}'; ${advice}`);
  }
  for (const [option, values] of Object.entries(CHOICES)) {
    const value = options[option as keyof DistributedLockOptions];
    if (value !== undefined && !values.includes(value as string)) {
      throw new LockConfigurationError(`${where}: ${option} is ${show(value)}; it must be one of ${values.join(', ')}`);
    }
  }
  if (options.service !== undefined && (typeof options.service !== 'string' || options.service === '')) {
    throw new LockConfigurationError(
      `${where}: service is ${show(options.service)}; it must be the name of a RedisLockModule`,
    );
  }
  return options;
}

function toAcquisition(
  { waitTime, leaseTime, type, onLost, onBusy }: DistributedLockOptions,
  where: string,
): LockOptions | undefined {
  const answered = onBusy !== undefined && onBusy !== 'throw';
  const options = {
    ...(answered && { waitTime: 0 }),
    ...(waitTime !== undefined && { waitTime: toWaitTime(waitTime, `${where}: waitTime`) }),
    ...(leaseTime !== undefined && { leaseTime: toLeaseTime(leaseTime, `${where}: leaseTime`) }),
    ...(type !== undefined && { type }),
    ...(onLost !== undefined && { onLost }),
  };
  return Object.keys(options).length > 0 ? options : undefined;
}

function toNamesOf(key: LockKey, where: string, method: string): NamesOf {
  if (typeof key === 'string') return compileTemplate(key, where, method);
  if (typeof key === 'function') return ({ instance, args }) => key.apply(instance, args as unknown[]);
  if (!Array.isArray(key) || !key.every((template) => typeof template === 'string')) {
    throw new LockConfigurationError(
      `${where}: key is ${show(key)}; it must be a template, a list of templates, or a function`,
    );
  }
  if (key.length === 0) throw new LockConfigurationError(`${where}: key is an empty list: nothing would be locked`);
  const templates = (key as readonly string[]).map((template) => compileTemplate(template, where, method));
  return (invocation) => templates.flatMap((namesOf) => namesOf(invocation));
}

function toBusyAnswer(
  onBusy: DistributedLockOptions['onBusy'],
  prototype: object,
  where: string,
): BusyAnswer | undefined {
  if (onBusy === undefined || onBusy === 'throw') return undefined;
  if (onBusy === 'skip') return () => undefined;
  if (typeof onBusy === 'function') return onBusy;
  if (typeof onBusy === 'string' && hasMethod(prototype, onBusy)) {
    return function (this: Record<string, BusyAnswer>, busy, ...args) {
      return this[onBusy](busy, ...args);
    };
  }
  throw new LockConfigurationError(
    `${where}: onBusy is ${show(onBusy)}; it must be 'throw', 'skip', a function, or the name of a method of the class`,
  );
}

function hasMethod(prototype: object, name: string): boolean {
  for (let type = prototype; type !== null && type !== Object.prototype; type = Object.getPrototypeOf(type)) {
    const descriptor = Object.getOwnPropertyDescriptor(type, name);
    if (descriptor !== undefined) return typeof descriptor.value === 'function' && name !== 'constructor';
  }
  return false;
}

function show(value: unknown): string {
  return typeof value === 'string'
    ? `'${value.slice(0, 40)}'`
    : Array.isArray(value)
      ? 'a list'
      : typeof value === 'object'
        ? 'an object'
        : String(value);
}
