import { LockConfigurationError, LockKeyError } from '../../engine/errors.js';
import {
  checkFlightOptions,
  FLIGHT_OPTIONS,
  type FlightOptions,
  type FlightTerms,
} from '../../engine/flights/flight-terms.js';
import type { FlightSerializer, JsonResult } from '../../engine/flights/serialize-result.js';
import type { OptionTable } from '../../engine/terms/option-table.js';
import { IS_LOCK_SERVICE, type LockService } from '../../service/lock-service.js';
import type { Lockable } from '../lock-service-property.js';
import { METHOD_OPTIONS, toOptions } from './check-decorator-options.js';
import { compileMethod, type DecoratedMethod, purposeOf, resolvedOncePerService } from './compile-locked-method.js';
import { decorateMethod } from './decorate-method.js';
import type { HasParameters, IsAny } from './distributed-lock.decorator.js';
import type { Anything, Method, SignalFunction } from './distributed-lock.options.js';
import { refuseUnnamed, serviceOf, signalOf } from './locked-call.js';
import { returnKindOf } from './return-kind.js';

/**
 * How the name of a single flight is built: a template, as in `LockKey`, or a function of the method's arguments. It
 * has to give one name.
 *
 * @publicApi
 */
export type FlightKey<Args extends readonly unknown[] = Anything[], Template extends string = string> =
  | Template
  | ((...args: Args) => string);

/** Options of `@SingleFlight`. Durations are milliseconds, or strings such as `'30s'`. @publicApi */
export interface SingleFlightOptions<Args extends readonly unknown[] = Anything[]>
  extends Omit<FlightOptions, 'signal' | 'group'> {
  /**
   * How the name is built: a template such as `'prices:#<args[0]>'`, or a function of the method's arguments. If a
   * value is missing, the call fails with LockKeyError, and the method does not run.
   */
  readonly key: FlightKey<Args>;
  /**
   * A function of the method's arguments that returns an AbortSignal. When it aborts, this call stops waiting and fails
   * with LockAbortedError. It does not stop a method that has begun, and does not affect other callers. Default: none.
   */
  readonly signal?: SignalFunction<Args>;
  /** Name of the RedisLockModule to use. Default: the one without a name. */
  readonly service?: string;
}

type Given = SingleFlightOptions & Partial<FlightSerializer<unknown>>;

const OPTIONS: OptionTable<Given> = { ...FLIGHT_OPTIONS, ...METHOD_OPTIONS };

/** A method with `@SingleFlight`. */
interface FlightMethod extends DecoratedMethod {
  readonly options: Omit<Given, 'key' | 'service' | 'signal'>;
  readonly termsIn: (locks: LockService) => FlightTerms;
}

/**
 * Runs the method once for all calls with the same key at the same time, in all processes that share the Redis. One
 * call runs it, and the others get its result. With `keepFor`, later calls also get the result.
 *
 * ```ts
 * @SingleFlight({ key: 'prices:#<args[0]>', keepFor: '1m' })
 * async prices(currency: string): Promise<Price[]> { … }
 *
 * @SingleFlight('exchange-rates')
 * async fetchRates() { … }
 * ```
 *
 * The method returns a promise of a JSON value. For other types, set `serialize` and `deserialize`. All callers get a
 * copy of what the method returned, so the result may depend only on the key. If it depends on something else, such as
 * the user, make that a part of the key. The decorator may be used where `@DistributedLock` may. In the method,
 * `currentLease()` has the fencing token. `LockService.forgetResult(name)` deletes a stored result.
 *
 * Calls fail with the errors of `LockService.singleFlight`, and with LockKeyError when no name can be made from the
 * arguments. A call with the same key from inside the method fails with LockDeadlockError, because it would wait for
 * itself. So does `super.method()` if both methods are decorated.
 *
 * @throws LockConfigurationError when the class is defined, naming class, method and what is wrong
 * @see {@link LockService.singleFlight}, and docs/single-flight.md
 * @publicApi
 */
export function SingleFlight<T, Args extends readonly unknown[] = Anything[], Key extends string = never>(
  options: SingleFlightOptions<Args> & FlightSerializer<T> & { readonly key: FlightKey<Args, Key> },
): FlightDecorator<Args, T, Key>;
export function SingleFlight<Args extends readonly unknown[] = Anything[], Key extends string = never>(
  keyOrOptions:
    | FlightKey<Args, Key>
    | (SingleFlightOptions<Args> & { readonly key: FlightKey<Args, Key>; readonly serialize?: undefined }),
): FlightDecorator<Args, typeof JSON_ONLY, Key>;
export function SingleFlight(keyOrOptions: FlightKey | Given): FlightDecorator<Anything[], Anything> {
  return decorateMethod('@SingleFlight', (target, propertyKey, original, where) => {
    const method = compileFlightMethod(target, propertyKey, original, keyOrOptions, where);
    return { serviceName: method.serviceName, wrapper: flightOf(method) };
  }) as FlightDecorator<Anything[], Anything>;
}

/** Stands for the type of results without a serializer. */
declare const JSON_ONLY: unique symbol;

/**
 * A method decorator that accepts only methods whose results can be shared.
 *
 * @publicApi
 */
export interface FlightDecorator<Args extends readonly unknown[], T = typeof JSON_ONLY, Key extends string = never> {
  <M extends Method>(
    target: object,
    propertyKey: string | symbol,
    descriptor: TypedPropertyDescriptor<M> & CanBeShared<M, Args, T> & HasParameters<M, Key>,
  ): void;

  // See LockDecorator.
  /** @hidden */
  (): never;
}

type CanBeShared<M extends Method, Args extends readonly unknown[], T> =
  IsAny<M> extends true
    ? unknown
    : Promise<Awaited<ReturnType<M>>> extends ReturnType<M>
      ? ((...args: Args) => void) extends (...args: Parameters<M>) => void
        ? IsShareable<Awaited<ReturnType<M>>, T> extends true
          ? unknown
          : { readonly 'the result is not JSON: give serialize and deserialize for its type': never }
        : { readonly 'the key or signal function does not take the parameters of this method': never }
      : { readonly 'a method with @SingleFlight returns a Promise': never };

type IsShareable<R, T> =
  IsAny<R> extends true
    ? true
    : [T] extends [typeof JSON_ONLY]
      ? [R] extends [JsonResult<R>]
        ? true
        : false
      : [R, T] extends [T, R]
        ? true
        : false;

/** @throws LockConfigurationError naming the method and the option that is wrong */
function compileFlightMethod(
  prototype: object,
  key: string | symbol,
  body: Method,
  keyOrOptions: FlightKey | Given,
  where: string,
): FlightMethod {
  const given = toOptions<Given>(keyOrOptions, OPTIONS, '@SingleFlight', where);
  const { key: nameKey, service, signal, ...options } = given;
  if (Array.isArray(nameKey)) throw new LockConfigurationError(`${where}: a single flight has one name, not a list`);
  if (!['promise', 'unknown'].includes(returnKindOf(prototype, key, body, undefined, where)))
    throw new LockConfigurationError(
      `${where}: @SingleFlight is for methods that return a promise, because a result is shared as a whole`,
    );
  checkFlightOptions(options, where);
  const purpose = purposeOf({ key: nameKey }, where);
  return {
    ...compileMethod(prototype, key, body, { key: nameKey, service, signal }, where),
    options,
    termsIn: resolvedOncePerService((locks) => locks.flightTermsOf(options, purpose, where)),
  };
}

/** Wraps a method: each call finds the lock service of its instance, and makes the name from its arguments. */
function flightOf(method: FlightMethod): Method {
  return {
    async shared(this: Lockable, ...args: unknown[]) {
      const locks = serviceOf(method, this);
      let name: string;
      try {
        name = oneName(method.namesOf({ instance: this, args, method: method.name }), method);
      } catch (error) {
        return refuseUnnamed(error, locks, method);
      }
      const body = () => method.body.apply(this, args);
      if (locks[IS_LOCK_SERVICE] === true) {
        const signal = signalOf(method, this, args);
        const terms = method.termsIn(locks);
        return locks.flightUnder(name, signal === undefined ? terms : { ...terms, signal }, body, method.where);
      }
      return mockedFlight(locks, name, method, body);
    },
  }.shared;
}

function oneName(names: string | readonly string[], { where }: FlightMethod): string {
  if (!Array.isArray(names)) return names as string;
  if (names.length === 1) return names[0];
  throw new LockKeyError(
    `${where}: the key makes ${names.length} names, but a single flight has one. Join them into one name`,
    String(names[0] ?? ''),
  );
}

/** In a test, a replacement of LockService can share results only if it has `singleFlight`. */
function mockedFlight(
  mock: Partial<Pick<LockService, 'singleFlight'>>,
  name: string,
  { where, options }: FlightMethod,
  body: () => Promise<unknown>,
): unknown {
  const call = mock.singleFlight as ((...args: unknown[]) => unknown) | undefined;
  if (typeof call !== 'function')
    throw new LockConfigurationError(
      `${where} did not run, because the replacement of LockService has no singleFlight. Give the mock one, or use LockTestingModule of 'nestjs-redis-lock/testing'`,
    );
  return call.apply(mock, Object.keys(options).length === 0 ? [name, body] : [name, options, body]);
}
