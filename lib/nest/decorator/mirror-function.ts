import 'reflect-metadata';
import type { Method } from './distributed-lock.options.js';

/**
 * Makes `wrapper` look like `original` to everybody who looks at a method from outside: NestJS and other decorators' explorers.
 * It gets its name, length, own properties and kind (async, generator), and the metadata that decorators below have put on it.
 * Decorators above put theirs on the wrapper itself.
 */
export function mirrorFunction(original: Method, wrapper: Method): Method {
  Object.setPrototypeOf(wrapper, Object.getPrototypeOf(original));
  for (const key of Reflect.ownKeys(original)) {
    const descriptor = Object.getOwnPropertyDescriptor(original, key);
    if (descriptor !== undefined && key !== 'arguments' && key !== 'caller')
      Object.defineProperty(wrapper, key, descriptor);
  }
  for (const key of Reflect.getOwnMetadataKeys(original)) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, original), wrapper);
  }
  return wrapper;
}
