import { LockConfigurationError } from '../../engine/errors.js';
import {
  MAX_LEASE_TIME,
  type Milliseconds,
  toFixedLease,
  toHoldLimit,
  toMilliseconds,
  toWaitTime,
} from '../../engine/terms/duration.js';
import {
  type AcquisitionTerms,
  LONGEST_GROUP,
  type Purpose,
  type RunOptions,
  toPermits,
} from '../../engine/terms/lock-options.js';
import { describeValue } from '../../engine/terms/option-table.js';
import type { LockService } from '../../service/lock-service.js';
import { compileTemplate, type NamesOf } from '../key-template/key-template.js';
import { getLockServiceToken } from '../redis-lock.constants.js';
import { toDecoratorOptions } from './check-decorator-options.js';
import type {
  BusyAnswer,
  DistributedLockOptions,
  LockKey,
  Method,
  PermitsFunction,
  ReturnKind,
  SignalFunction,
} from './distributed-lock.options.js';
import { toBusyAnswer, waitOf } from './on-busy.js';
import { returnKindOf } from './return-kind.js';

/** A decorated method, with everything that can be checked and resolved before the first call. */
export interface DecoratedMethod {
  /** `OrdersService.ship` */
  readonly where: string;
  readonly name: string;
  readonly body: Method;
  /** The property of the instance that contains the lock service. */
  readonly service: symbol;
  readonly serviceName: string | undefined;
  readonly namesOf: NamesOf;
  readonly signal: SignalFunction | undefined;
}

/** A method with `@DistributedLock`. */
export interface LockedMethod extends DecoratedMethod {
  readonly kind: ReturnKind | 'unknown';
  /** The terms of its acquisitions: its options, and the defaults of the service. */
  readonly termsIn: (locks: LockService) => AcquisitionTerms;
  /** The option `permits` of a call, if it depends on the arguments. */
  readonly permitsOf: PermitsFunction | undefined;
  readonly holdOptions: { readonly holdAtLeast?: Milliseconds };
  /** `undefined`: the call fails with LockBusyError. */
  readonly onBusy: BusyAnswer | undefined;
}

/** @throws LockConfigurationError naming the method and the option that is wrong */
export function compileLockedMethod(
  prototype: object,
  key: string | symbol,
  body: Method,
  keyOrOptions: LockKey | DistributedLockOptions,
  where: string,
): LockedMethod {
  const options = toDecoratorOptions(keyOrOptions, where);
  const { holdAtLeast } = options;
  const lockOptions = toLockOptions(options, where);
  const purpose = purposeOf(options, where);
  const least = holdAtLeast === undefined ? 0 : toMilliseconds(holdAtLeast, `${where}: holdAtLeast`, 0, MAX_LEASE_TIME);
  if (lockOptions?.holdAtMost !== undefined && least > (lockOptions.holdAtMost as Milliseconds))
    throw new LockConfigurationError(`${where}: holdAtLeast is longer than holdAtMost`);
  return {
    ...compileMethod(prototype, key, body, options, where),
    kind: returnKindOf(prototype, key, body, options.returns, where),
    termsIn: resolvedOncePerService((locks) => locks.termsOf(lockOptions, purpose)),
    permitsOf: typeof options.permits === 'function' ? options.permits : undefined,
    holdOptions: holdAtLeast === undefined ? {} : { holdAtLeast: least as Milliseconds },
    onBusy: toBusyAnswer(options.onBusy),
  };
}

/** What all decorators of methods have in common. @throws LockConfigurationError when the key is wrong */
export function compileMethod(
  prototype: object,
  key: string | symbol,
  body: Method,
  options: Pick<DistributedLockOptions, 'key' | 'service' | 'signal'>,
  where: string,
): DecoratedMethod {
  const name = String(key);
  const { signal } = options;
  return {
    where,
    name,
    body,
    service: getLockServiceToken(options.service),
    serviceName: options.service,
    namesOf: toNamesOf(options.key, where, name, parametersOf(prototype, key, body)),
    signal,
  };
}

function toNamesOf(key: LockKey, where: string, method: string, parameters: number | undefined): NamesOf {
  if (typeof key === 'string') return compileTemplate(key, where, method, parameters);
  if (typeof key === 'function') return ({ instance, args }) => key.apply(instance, args as unknown[]);
  if (!Array.isArray(key) || !key.every((template) => typeof template === 'string')) {
    throw new LockConfigurationError(
      `${where}: key is ${describeValue(key)}; it must be a template, a list of templates, or a function`,
    );
  }
  if (key.length === 0) throw new LockConfigurationError(`${where}: key is an empty list: nothing would be locked`);
  const templates = (key as readonly string[]).map((template) => compileTemplate(template, where, method, parameters));
  return (invocation) => templates.flatMap((namesOf) => namesOf(invocation));
}

/**
 * How many parameters a method has, if that is known. Its `length` does not count a rest parameter, or what follows a
 * default value. So it is known only where the compiler has declared as many.
 */
function parametersOf(prototype: object, key: string | symbol, { length }: Method): number | undefined {
  const declared: unknown = Reflect.getOwnMetadata('design:paramtypes', prototype, key);
  return Array.isArray(declared) && declared.length === length ? length : undefined;
}

/** @returns `undefined` if the service's defaults apply */
function toLockOptions(options: DistributedLockOptions, where: string): RunOptions | undefined {
  const { waitTime, outageTimeout, leaseTime, holdAtMost, type, onLost, release, reentry } = options;
  const permits = permitsAtFirst(options, where);
  const lockOptions = {
    ...waitOf(options, where),
    ...(waitTime !== undefined && { waitTime: toWaitTime(waitTime, `${where}: waitTime`) }),
    ...(outageTimeout !== undefined && { outageTimeout: toWaitTime(outageTimeout, `${where}: outageTimeout`) }),
    ...(leaseTime !== undefined && { leaseTime: toFixedLease(leaseTime, `${where}: leaseTime`) }),
    ...(holdAtMost !== undefined && { holdAtMost: toHoldLimit(holdAtMost, `${where}: holdAtMost`) }),
    ...(type !== undefined && { type }),
    ...(permits !== undefined && { permits }),
    ...(onLost !== undefined && { onLost }),
    ...(release !== undefined && { release }),
    ...(reentry !== undefined && { reentry }),
  };
  return Object.keys(lockOptions).length > 0 ? lockOptions : undefined;
}

/** The option `permits`, or 1 as long as it depends on the arguments. */
function permitsAtFirst({ permits, type, key }: DistributedLockOptions, where: string): number | undefined {
  if (permits === undefined) return undefined;
  if (Array.isArray(key) && key.length > 1)
    throw new LockConfigurationError(`${where}: permits is for one name, and key is a list. Leave out one of them`);
  return toPermits(typeof permits === 'function' ? 1 : permits, type, where);
}

/** Events and metrics identify the method by its template, because the lock's name changes from call to call. */
export function purposeOf({ key, onBusy }: Pick<DistributedLockOptions, 'key' | 'onBusy'>, where: string): Purpose {
  const group = typeof key === 'function' ? where : [key].flat().join(', ').slice(0, LONGEST_GROUP);
  return { group, method: where, skips: onBusy !== undefined && onBusy !== 'throw', dropsBusy: onBusy === 'skip' };
}

/**
 * Resolves the terms once per service, because one class can be instantiated in several applications, each with its own
 * lock service.
 */
export function resolvedOncePerService<Terms>(resolve: (locks: LockService) => Terms): (locks: LockService) => Terms {
  const resolved = new WeakMap<LockService, Terms>();
  return (locks) => {
    let terms = resolved.get(locks);
    if (terms === undefined) {
      terms = resolve(locks);
      resolved.set(locks, terms);
    }
    return terms;
  };
}
