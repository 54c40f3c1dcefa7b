import 'reflect-metadata';
import type { Observable } from 'rxjs';
import { LockConfigurationError } from '../../engine/errors.js';
import type { Method, ReturnKind } from './distributed-lock.options.js';

/**
 * What a method gives back, known before it runs: the option, else what the function itself is, else its declared return type,
 * else a promise.
 *
 * @throws LockConfigurationError for a generator that is not async: it could not wait for the lock
 */
export function returnKindOf(
  prototype: object,
  key: string | symbol,
  method: Method,
  option: ReturnKind | undefined,
  where: string,
): ReturnKind {
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
  return typeof declared === 'function' && typeof declared.prototype?.subscribe === 'function'
    ? 'observable'
    : 'promise';
}

/** An Observable of any copy of RxJS. */
export function isObservableLike(value: unknown): value is Observable<unknown> {
  const { subscribe, lift } = (value ?? {}) as { subscribe?: unknown; lift?: unknown };
  return typeof subscribe === 'function' && typeof lift === 'function';
}

export function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof (value as AsyncIterable<unknown> | null | undefined)?.[Symbol.asyncIterator] === 'function';
}

/** An iteration that has not run yet: a generator, a cursor. A stream, which reads by itself, is none. */
export function isAsyncIterator(value: unknown): boolean {
  return isAsyncIterable(value) && typeof (value as { next?: unknown }).next === 'function';
}
