import { LockConfigurationError } from '../../engine/errors.js';
import { isAsyncIterable } from '../../engine/scope/body-result.js';
import type { DecoratedMethod, LockedMethod } from './compile-locked-method.js';
import { isObservableLike } from './return-kind.js';

/** The instance of a decorated method has no lock service, so the method did not run. */
export function noLockService({ where, serviceName }: DecoratedMethod, instance: unknown): LockConfigurationError {
  if (instance === undefined || instance === null) {
    return new LockConfigurationError(
      `${where} was called without its instance, and did not run: call it as a method, or bind it`,
    );
  }
  const service = serviceName === undefined ? 'lock service' : `lock service '${serviceName}'`;
  return new LockConfigurationError(
    `${where} did not run, because this instance has no ${service}. NestJS gives one to providers and controllers when RedisLockModule.forRoot(...) is imported: after the constructor has run, and to those of useFactory and useValue, also in an array, Set or Map, when the application starts. Any other instance needs attachLockService(instance, createLockService(...))`,
  );
}

/** A caller iterates over the promise of a method whose kind another decorator hides. */
export function hiddenIteration({ where }: LockedMethod): LockConfigurationError {
  return new LockConfigurationError(
    `${where} was taken for a method that returns a promise, because another decorator hides what it is: set returns: 'iterable'`,
  );
}

const KINDS = {
  unknown: 'a promise',
  promise: 'a promise',
  observable: 'an Observable',
  iterable: 'an async iterable',
};

/** The method did not return the expected kind of result. For promises, see `checkResult`. */
export function wrongKind({ where, kind }: LockedMethod, result: unknown): LockConfigurationError {
  const returns = isObservableLike(result) ? 'observable' : isAsyncIterable(result) ? 'iterable' : 'promise';
  const found = returns === 'promise' ? 'something else' : KINDS[returns];
  return new LockConfigurationError(
    `${where} was expected to return ${KINDS[kind]}, but returned ${found}: set returns: '${returns}'`,
  );
}

/** `onBusy` returned something that cannot be iterated over. */
export function noIteration({ where }: LockedMethod): LockConfigurationError {
  return new LockConfigurationError(
    `${where}: onBusy must return something to iterate over, as the method itself does`,
  );
}
