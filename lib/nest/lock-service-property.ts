import { Inject } from '@nestjs/common';
import { LockConfigurationError } from '../engine/errors.js';
import { LockService } from '../service/lock-service.js';
import { getLockServiceToken } from './redis-lock.constants.js';

/** Called with each instance that NestJS creates after the application has started, by the service it gets. */
export const lateInstances = new WeakMap<object, (instance: object) => void>();

/** An instance with decorated methods. Its lock service is the property {@link getLockServiceToken}. */
export interface Lockable {
  [service: symbol]: LockService | undefined;
}

/**
 * Makes NestJS inject the service into every instance of this class and its subclasses. The property is not enumerable,
 * so that it does not appear in logs and in comparisons of instances. The service without a name is injected by its
 * class, as in a constructor, so that a test replaces both with one provider. If there is no service, NestJS prints the
 * token in its error, so the token's text says what to do.
 */
export function declareLockService(prototype: object, name: string | undefined): void {
  const token = getLockServiceToken(name);
  if (Object.hasOwn(prototype, token)) return;
  Object.defineProperty(prototype, token, {
    configurable: true,
    get: () => undefined,
    set(this: object, service: LockService) {
      Object.defineProperty(this, token, { value: service, configurable: true, writable: true });
      lateInstances.get(service)?.(this);
    },
  });
  Inject(name === undefined ? LockService : token)(prototype, token);
}

/**
 * Gives a lock service to an instance that NestJS did not create, so that its decorated methods work. Instances of
 * class providers and controllers have one already; those of `useFactory` and `useValue` providers get one when the
 * application starts.
 *
 * ```ts
 * const orders = attachLockService(new OrdersService(repository), createLockService({ backend: 'memory' }));
 * ```
 *
 * @param name the service's name, if methods use a named one (`@DistributedLock({ service: name })`)
 * @returns the instance
 * @throws LockConfigurationError when none of its methods uses that service, when it already has another one, or
 * when it is frozen @publicApi
 */
export function attachLockService<T extends object>(instance: T, service: LockService, name?: string): T {
  const token = getLockServiceToken(name);
  const what = instance.constructor?.name ?? 'the object';
  if (!asksFor(instance, token)) {
    const decorator = name === undefined ? '@DistributedLock' : `@DistributedLock({ service: '${name}' })`;
    throw new LockConfigurationError(
      `${what} has no method with ${decorator}: there is nothing to attach a lock service to`,
    );
  }
  const present = instance[token];
  if (present === service) return instance;
  if (present !== undefined) {
    throw new LockConfigurationError(
      `${what} already has the lock service of another application that is still running: close that one first, or let each create its own instance with useFactory`,
    );
  }
  if (!Object.isExtensible(instance)) {
    throw new LockConfigurationError(
      `${what} is frozen, so its methods with @DistributedLock cannot be given a lock service`,
    );
  }
  (instance as Lockable)[token] = service;
  return instance;
}

/** Whether a method of this object uses the service with this token. */
export function asksFor(value: unknown, token: symbol): value is Lockable {
  try {
    return typeof value === 'object' && value !== null && token in value;
  } catch {
    return false; // a proxy that throws outside of a request
  }
}
