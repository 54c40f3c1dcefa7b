import 'reflect-metadata';
import { LockConfigurationError } from '../../engine/errors.js';
import { keepClassName } from '../key-template/class-name.js';
import { declareLockService } from '../lock-service-property.js';
import type { Anything, Method } from './distributed-lock.options.js';

/** What replaces a method. */
interface Replacement {
  readonly wrapper: Method;
  /** The name of the lock service that the wrapper finds on the instance; undefined: the one without a name. */
  readonly serviceName: string | undefined;
}

/**
 * A decorator that replaces a method of instances. The wrapper looks like the method, and instances of the class get a
 * lock service.
 *
 * @param decorator how errors name it: `@DistributedLock`
 * @param replace receives the method, and how errors name it: `OrdersService.ship`
 */
export function decorateMethod(
  decorator: string,
  replace: (target: object, propertyKey: string | symbol, original: Method, where: string) => Replacement,
) {
  return (target: object, propertyKey: string | symbol, descriptor: TypedPropertyDescriptor<Anything>): void => {
    const { where, method: original } = decoratedMethod(decorator, target, propertyKey, descriptor);
    const { wrapper, serviceName } = replace(target, propertyKey, original, where);
    declareLockService(target, serviceName);
    keepClassName(target.constructor);
    descriptor.value = mirrorFunction(original, wrapper);
  };
}

/**
 * The method that a decorator was used on, and how errors name it: `OrdersService.ship`.
 *
 * @throws LockConfigurationError if it is no method of instances, or if the compiler uses standard decorators
 */
export function decoratedMethod(
  decorator: string,
  target: object,
  propertyKey: string | symbol,
  descriptor: PropertyDescriptor | undefined,
): { readonly where: string; readonly method: Method } {
  // Standard decorators get the value, which a field does not have, and a context.
  if (typeof propertyKey === 'object') {
    const { name } = propertyKey as { name: string | symbol };
    throw new LockConfigurationError(
      `${nameOf(name)}: ${decorator} needs "experimentalDecorators" in tsconfig.json, as NestJS does`,
    );
  }
  const type = typeof target === 'function' ? target : target.constructor;
  const where = `${type.name || '(anonymous class)'}.${nameOf(propertyKey)}`;
  if (typeof target === 'function') {
    throw new LockConfigurationError(
      `${where} is static: ${decorator} needs an instance, because NestJS injects the lock service into instances`,
    );
  }
  if (descriptor?.get !== undefined || descriptor?.set !== undefined) {
    throw new LockConfigurationError(`${where} is an accessor: ${decorator} is for methods`);
  }
  if (typeof descriptor?.value !== 'function') {
    throw new LockConfigurationError(
      `${where} is a field: ${decorator} is for methods; write async ${nameOf(propertyKey)}() { … }`,
    );
  }
  return { where, method: descriptor.value as Method };
}

function nameOf(propertyKey: string | symbol): string {
  return typeof propertyKey === 'symbol' ? `[${propertyKey.description ?? 'symbol'}]` : String(propertyKey);
}

/**
 * Makes `wrapper` look like `original` to code that inspects methods, such as NestJS and the explorers of other
 * decorators. It takes over the name, the length, the own properties and the kind (async, generator) of the original,
 * and the metadata that decorators below have set on it. Decorators above set theirs on the wrapper itself.
 */
function mirrorFunction(original: Method, wrapper: Method): Method {
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
