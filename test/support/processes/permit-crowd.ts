// A separate process whose 16 callers take a lock that n may hold, again and again until it gets a SIGTERM. Its arguments
// are <url> <name> <n> <watchdogTimeout>. In Redis, `bodies` has the bodies that run, each until its lease ends, `most` the
// most of them at a time, and `entries` how many there were.
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createLockService } from '../../../lib/service/create-lock-service.js';

const [url, name, permits, watchdogTimeout] = process.argv.slice(2);
const redis = new Redis(url);
const locks = createLockService({ connection: url, watchdogTimeout: Number(watchdogTimeout), waitTime: '1m' });
let over = false;

const ENTER = `
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[2])
  local running = redis.call('ZCOUNT', KEYS[1], '(' .. now, '+inf')
  redis.call('SET', KEYS[2], math.max(running, tonumber(redis.call('GET', KEYS[2]) or 0)))
  redis.call('INCR', KEYS[3])`;

async function visit(): Promise<void> {
  await locks.withLock(name, { permits: Number(permits) }, async (lease) => {
    const id = `${lease.owner} ${lease.fencingToken}`;
    await redis.eval(ENTER, 3, 'bodies', 'most', 'entries', Math.floor(lease.remainingTime()), id);
    await sleep(5);
    await redis.zrem('bodies', id);
  });
}

const crowd = Array.from({ length: 16 }, async () => {
  while (!over) await visit();
});
process.once('SIGTERM', async () => {
  over = true;
  await Promise.all(crowd);
  await locks.close();
  redis.disconnect();
});
process.stdout.write('started\n');
