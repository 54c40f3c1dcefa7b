import type { Redis } from 'ioredis';

/**
 * Token clocks, the last tokens of fenced locks, requests that may come twice, counters of waiters that found the lock
 * taken. They block nobody.
 */
const HARMLESS = /^(nestjs_redis_lock_(clock|request|line)|redisson_lock_token)\b/;

/**
 * A record of a client, or their index: it is written while the service lives, and expires half a minute after that.
 */
export function isClientRecord(key: string): boolean {
  return /^nestjs_redis_lock_clients?\b/.test(key);
}

/** Keys of locks, of places in queues, and of writers that wait. A semaphore is among them unless it has `permits`. */
export async function leftBehind(redis: Redis, semaphores: Readonly<Record<string, number>> = {}): Promise<string[]> {
  const keys = (await redis.keys('*')).filter((key) => !HARMLESS.test(key) && !isClientRecord(key));
  const left: string[] = [];
  for (const key of keys.sort()) {
    if (key in semaphores) {
      const permits = Number(await redis.get(key));
      if (permits !== semaphores[key]) left.push(`${key} with ${permits} permits`);
    } else if (!isNoteOf(key, semaphores)) left.push(key);
  }
  return left;
}

/** What is known of a semaphore that is to be there. */
function isNoteOf(key: string, semaphores: Readonly<Record<string, number>>): boolean {
  const [, noted = ''] = /^nestjs_redis_lock_counter:\{(.*)\}$/.exec(key) ?? [];
  return noted in semaphores;
}
