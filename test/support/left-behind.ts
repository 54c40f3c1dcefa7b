import type { Redis } from 'ioredis';

/** Token clocks, the last tokens of fenced locks, requests that may come twice, and who was woken in vain: they keep nobody from anything. */
const HARMLESS = /^(nestjs_redis_lock_(clock|request|line)|redisson_lock_token)\b/;

/** Keys of locks, of places in queues, and of writers that wait. A semaphore is among them unless it has `permits`. */
export async function leftBehind(redis: Redis, semaphores: Readonly<Record<string, number>> = {}): Promise<string[]> {
  const keys = (await redis.keys('*')).filter((key) => !HARMLESS.test(key));
  const left: string[] = [];
  for (const key of keys.sort()) {
    if (key in semaphores) {
      const permits = Number(await redis.get(key));
      if (permits !== semaphores[key]) left.push(`${key} with ${permits} permits`);
    } else left.push(key);
  }
  return left;
}
