/**
 * Set on each LockService by its constructor. Mocks do not have it, not even those that are made from the class or that invent every
 * property. The symbol is registered, because a process may have loaded two copies of the library.
 */
export const IS_LOCK_SERVICE: unique symbol = Symbol.for('nestjs-redis-lock.is-lock-service') as never;
