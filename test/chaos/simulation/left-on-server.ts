import type { InProcessServer } from '../../../lib/backends/redis/in-process/in-process-server.js';
import { counterNote, permitLeases } from '../../../lib/backends/redis/lock-keys.js';
import { POOL, SEATS } from './errands/shared-objects.js';
import type { SimulatedServer } from './simulated/simulated-server.js';

/** Keys that stay for good: the clocks of the tokens, the counters of fenced locks, and semaphores. */
const LASTING = /^(?:nestjs_redis_lock_clock|redisson_lock_token:)/;
const SEMAPHORES: readonly string[] = [POOL, SEATS].flatMap((key) => [key, counterNote(key)]);
/** Like Redisson's, the queue of a fair lock has no end of its own: the next request drops the dead from it. */
const QUEUES = /^(?:redisson_lock_queue|nestjs_redis_lock_places):/;
const TIMEOUTS = /^redisson_lock_timeout:/;
const LINES = /^nestjs_redis_lock_turns:/;
/** The names of locks and latches have no prefix. */
const BESIDE_LOCKS = /^(?:redisson_|nestjs_redis_lock_|\{)/;

/**
 * What should no longer be on the servers when all processes have ended.
 *
 * @param deserted whether no process is left that could delete latches
 */
export function leftOn(servers: readonly SimulatedServer[], deserted: boolean): Readonly<Record<string, number>> {
  const counts = {
    locks: 0,
    queues: 0,
    lines: 0,
    latches: 0,
    'permits with a lease': 0,
    'other keys that never end': 0,
  };
  for (const { redis, wall } of servers) {
    for (const key of redis.keys.keys()) {
      if (TIMEOUTS.test(key)) counts.queues += redis.execute('ZCOUNT', [key, String(wall()), '+inf']) as number;
      const kind = kindOf(key, redis);
      if (kind !== undefined) counts[kind]++;
    }
    counts['permits with a lease'] += redis.execute('ZCARD', [permitLeases(SEATS)]) as number;
  }
  return deserted ? { ...counts, latches: 0 } : counts;
}

function kindOf(key: string, { keys }: InProcessServer) {
  if (LASTING.test(key) || SEMAPHORES.includes(key) || key === permitLeases(SEATS)) return undefined;
  if (QUEUES.test(key) || TIMEOUTS.test(key)) return undefined;
  if (LINES.test(key)) return 'lines';
  if (!BESIDE_LOCKS.test(key)) return keys.typeOf(key) === 'string' ? 'latches' : 'locks';
  return keys.endOf(key) === null ? 'other keys that never end' : undefined;
}
