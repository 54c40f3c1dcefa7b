import type { Redis } from 'ioredis';

// A counter in Redis that notices when two are inside. RedissonPeer.java does the same. Each body writes its name on
// entering, and deletes it on leaving. Whoever finds another name notes both.

const ENTER = `
local former = redis.call('set', 'inside:' .. KEYS[1], ARGV[1], 'GET')
if former then redis.call('rpush', 'overlaps:' .. KEYS[1], former .. ' ' .. ARGV[1]) end
return redis.call('incr', KEYS[1])`;

const LEAVE = `
if redis.call('get', 'inside:' .. KEYS[1]) == ARGV[1] then redis.call('del', 'inside:' .. KEYS[1]) end`;

export async function enter(redis: Redis, counter: string, who: string): Promise<void> {
  await redis.eval(ENTER, 1, counter, who);
}

export async function leave(redis: Redis, counter: string, who: string): Promise<void> {
  await redis.eval(LEAVE, 1, counter, who);
}

/**
 * Pairs of which both have been inside at once since the last call. Those of a process that was killed or stopped
 * inside are left out: when its lease has ended, the next one finds its name.
 *
 * @param faulty the names of such processes
 */
export async function takeOverlaps(redis: Redis, counter: string, faulty: readonly string[]) {
  const pairs = await redis.lrange(`overlaps:${counter}`, 0, -1);
  await redis.del(`overlaps:${counter}`);
  return pairs.filter((pair) => !pair.split(' ').some((name) => faulty.includes(name)));
}
