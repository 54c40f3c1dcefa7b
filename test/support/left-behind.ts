import type { Redis } from 'ioredis';

/**
 * Token clocks, the last tokens of fenced locks, requests that may arrive twice, and counters of waiters that found the
 * lock busy. They block nobody.
 */
const HARMLESS = /^(nestjs_redis_lock_(clock|request|line)|redisson_lock_token)\b/;

/**
 * A record of a client, or the index of records. It is written while the service is open, and expires half a minute
 * later.
 */
export function isClientRecord(key: string): boolean {
  return /^nestjs_redis_lock_clients?\b/.test(key);
}

/** Keys of locks, of queues, and of waiting writers. They include a semaphore unless it has `permits`. */
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

/** Whether the key is the note of a semaphore that may remain. */
function isNoteOf(key: string, semaphores: Readonly<Record<string, number>>): boolean {
  const [, noted = ''] = /^nestjs_redis_lock_counter:\{(.*)\}$/.exec(key) ?? [];
  return noted in semaphores;
}
