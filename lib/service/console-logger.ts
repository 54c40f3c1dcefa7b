import type { LockLogger } from '../engine/events/lock-logger.js';

/** Where warnings and errors go when neither NestJS nor the user gives a logger. */
export const consoleLogger: LockLogger = {
  warn: (message) => console.warn(`[RedisLock] ${message}`),
  error: (message) => console.error(`[RedisLock] ${message}`),
};
