import { LockService } from '../service/lock-service.js';

/** Token of the options of a RedisLockModule. */
export const REDIS_LOCK_OPTIONS = Symbol.for('nestjs-redis-lock.options');

/**
 * Token of a LockService: that of the module without a name, or with this name. It is also the key of the property in
 * which an instance with decorated methods keeps its service. NestJS prints the token when the service is missing, so
 * its text says what to do.
 *
 * The symbols are registered, so that a copy of this library loaded by `import` and one loaded by `require` use the
 * same tokens.
 *
 * @publicApi
 */
export function getLockServiceToken(name?: string): symbol {
  const options = name === undefined ? '...' : `{ name: '${name}', ... }`;
  const test = name === undefined ? '' : `{ name: '${name}' }`;
  const token = name === undefined ? 'LockService' : `getLockServiceToken('${name}')`;
  return Symbol.for(
    `nestjs-redis-lock: no LockService here; import RedisLockModule.forRoot(${options}) into the root module, or in a test LockTestingModule.forRoot(${test}) or { provide: ${token}, useValue: mock }`,
  );
}

const LOCK_SERVICE_CLASSES = Symbol.for('nestjs-redis-lock.lock-service-classes');

/**
 * The class LockService of each copy of this library that the process has loaded. Decorated methods inject the class of
 * their own copy, because a mock replaces that class. A module provides its service under all of them.
 */
export const lockServiceClasses: ReadonlySet<typeof LockService> = registerClass(LockService);

function registerClass(type: typeof LockService): Set<typeof LockService> {
  const registry = globalThis as unknown as Record<symbol, Set<typeof LockService> | undefined>;
  registry[LOCK_SERVICE_CLASSES] ??= new Set();
  return registry[LOCK_SERVICE_CLASSES].add(type);
}
