/** Token of the options that one RedisLockModule was given. */
export const REDIS_LOCK_OPTIONS = Symbol.for('nestjs-redis-lock.options');

/**
 * Token of a LockService: the default one, or a named instance. The same symbol is the property that holds the service on
 * instances with decorated methods. NestJS prints it when the service is missing, so it says what to do.
 *
 * The symbols are registered: a copy of this library loaded by `import` and one loaded by `require` have the same.
 *
 * @publicApi
 */
export function getLockServiceToken(name?: string): symbol {
  const options = name === undefined ? '...' : `{ name: '${name}', ... }`;
  return Symbol.for(
    `nestjs-redis-lock: no LockService here; import RedisLockModule.forRoot(${options}) into the root module`,
  );
}
