import 'reflect-metadata';
import { StreamableFile } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { LockConfigurationError } from '../../engine/errors.js';
import type { Method, ReturnKind } from './distributed-lock.options.js';

/**
 * What a method will return. This comes from the option `returns`, from the kind of the function, or from its
 * declared return type. Otherwise a promise is assumed.
 *
 * @throws LockConfigurationError for a generator that is not async, because it cannot wait for a lock
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

/** Whether it is an Observable, of any copy of RxJS. */
export function isObservableLike(value: unknown): value is Observable<unknown> {
  const { subscribe, lift } = (value ?? {}) as { subscribe?: unknown; lift?: unknown };
  return typeof subscribe === 'function' && typeof lift === 'function';
}

export function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof (value as AsyncIterable<unknown> | null | undefined)?.[Symbol.asyncIterator] === 'function';
}

/** Whether it is a stream, or Nest's StreamableFile of one, whose content has yet to be read from somewhere. */
export function isUnreadStream(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (value instanceof StreamableFile) return isUnreadStream(value.getStream());
  const { getReader, pipe } = value as Record<string, unknown>;
  if (typeof getReader === 'function') return true;
  if (typeof pipe !== 'function') return false;
  const { readable, _readableState } = value as { readable?: boolean; _readableState?: { ended?: boolean } };
  // Of the streams of Node.js, only this property shows that the end has arrived in the buffer, as it has in a
  // StreamableFile of a Buffer from the start.
  return readable === true && _readableState?.ended !== true;
}

/**
 * Whether it is an iteration that runs step by step: a generator or a cursor, but not a stream, which reads without
 * being asked.
 */
export function isAsyncIterator(value: unknown): boolean {
  return isAsyncIterable(value) && typeof (value as { next?: unknown }).next === 'function';
}
