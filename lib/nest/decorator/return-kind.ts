import 'reflect-metadata';
import type { Observable } from 'rxjs';
import { LockConfigurationError } from '../../engine/errors.js';
import { isObservable } from '../../engine/scope/body-result.js';
import type { Method, ReturnKind } from './distributed-lock.options.js';

/**
 * What a method will return. This comes from the option `returns`, from the kind of the function, or from its
 * declared return type. Otherwise it is unknown, and a promise is assumed.
 *
 * @throws LockConfigurationError for a generator that is not async, because it cannot wait for a lock
 */
export function returnKindOf(
  prototype: object,
  key: string | symbol,
  method: Method,
  option: ReturnKind | undefined,
  where: string,
): ReturnKind | 'unknown' {
  const tag = Object.prototype.toString.call(method);
  if (tag === '[object GeneratorFunction]') {
    throw new LockConfigurationError(
      `${where} is a generator, which cannot wait for a lock: make it async *${String(key)}()`,
    );
  }
  if (option !== undefined) return option;
  if (tag === '[object AsyncFunction]') return 'promise';
  if (tag === '[object AsyncGeneratorFunction]') return 'iterable';
  const declared: unknown = Reflect.getOwnMetadata('design:returntype', prototype, key);
  // A declared Promise says nothing: some compilers declare it for async generators.
  return typeof declared === 'function' && typeof declared.prototype?.subscribe === 'function'
    ? 'observable'
    : 'unknown';
}

/** {@link isObservable}, for RxJS. */
export const isObservableLike = isObservable as (value: unknown) => value is Observable<unknown>;
