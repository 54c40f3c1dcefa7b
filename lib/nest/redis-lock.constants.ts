/** Token of the options of a RedisLockModule. */
export const REDIS_LOCK_OPTIONS = Symbol.for('nestjs-redis-lock.options');

/**
 * Token of a LockService: that of the module without a name, or with this name. It is also the property in which instances with
 * decorated methods have their service. NestJS prints it when the service is missing, so it says what to do.
 *
 * The symbols are registered, so that a copy of this library loaded by `import` and one loaded by `require` have the same.
 *
 * @publicApi
 */
export function getLockServiceToken(name?: string): symbol {
  const options = name === undefined ? '...' : `{ name: '${name}', ... }`;
  return Symbol.for(
    `nestjs-redis-lock: no LockService here; import RedisLockModule.forRoot(${options}) into the root module`,
  );
}
