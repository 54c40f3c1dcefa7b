import 'reflect-metadata';
import type { Method } from './distributed-lock.options.js';

/**
 * Makes `wrapper` look like `original` to code that inspects methods, such as NestJS and the explorers of other decorators. It takes
 * over the name, the length, the own properties and the kind (async, generator) of the original, and the metadata that decorators
 * below have set on it. Decorators above set theirs on the wrapper itself.
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
