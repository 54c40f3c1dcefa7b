import type { AcquireRequest, LockType } from '../../../lib/backends/lock-backend.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { until } from '../../support/until.js';
import { CLIENT, RedisWorld } from './redis-world.js';

/** For how many milliseconds a place lasts that nobody refreshes. */
const SHORT = 1_000;

/** How often a living process refreshes its place, in milliseconds. */
const REFRESHED = 6_000;

describe('the places of processes that have died', () => {
  const world = new RedisWorld();
  let locks: LockService | undefined;
  afterEach(() => locks?.close());

  const enter = (key: string, type: LockType | 'permits') =>
    world.backend().acquire({ ...requestOf(type, key), waiterTimeout: SHORT, pastLine: false });

  const requestOf = (type: LockType | 'permits', key = world.key()): AcquireRequest => {
    const request = { ...world.request(), key, type };
    return type === 'permits' ? { ...request, permits: 1 } : request;
  };

  const lineOf = (key: string) => `nestjs_redis_lock_turns:{${key}}`;

  it.each(['reentrant', 'fenced', 'permits', 'read', 'write'] as const)('leave no keys behind: %s', async (type) => {
    await world.redis.flushall();
    const backend = world.backend();
    const held = requestOf(type === 'read' ? 'write' : type);
    await backend.acquire(held);
    await enter(held.key, type);
    await enter(held.key, type);
    expect(await world.redis.zcard(lineOf(held.key))).toBeGreaterThan(0);
    // It stands outside the line, so that the release leaves the lock free for it.
    await backend.subscribe(held.key, held.type, CLIENT, () => {}).ready;
    await backend.release(held);
    const left = async () => (await world.keys()).filter((key) => !/_clock$|^redisson_lock_token:/.test(key));
    await until(async () => (await left()).length === 0);
  });

  it.each(['reentrant', 'write'] as const)(
    'keep nobody from hearing of the releases of clients that know no line: %s',
    async (type) => {
      const key = world.key();
      const line = lineOf(key);
      const channel = `${type === 'write' ? 'redisson_rwlock' : 'redisson_lock__channel'}:{${key}}`;
      const java = `${CLIENT}:1`;
      await world.redis.hset(key, type === 'write' ? { mode: 'write', [`${java}:write`]: '1' } : { [java]: '1' });
      await world.redis.pexpire(key, 60_000);
      locks = createLockService({ connection: world.server.url, keyPrefix: '', waiterTimeout: 3 * REFRESHED });
      await enter(key, type);
      const [dead] = await world.redis.zrange(line, 0, '0');
      const waiting = locks.acquire(key, { type, waitTime: '30s' });
      waiting.catch(() => {});
      await until(async () => (await world.redis.zcard(line)) === 2);
      expect(await world.redis.zrange(line, 0, '0')).toEqual([dead]);
      const listeners = async () => ((await world.redis.pubsub('NUMSUB', channel)) as [string, number])[1];
      expect(await listeners()).toBe(0);
      // Once the other place is refreshed, it is the first. If only refreshes saw that the lock is free, Java would take it
      // again before.
      await until(async () => (await listeners()) === 1);
      await world.redis.del(key);
      await world.redis.publish(channel, '0');
      const released = performance.now();
      const lease = await waiting;
      expect(performance.now() - released).toBeLessThan(REFRESHED - 500);
      await lease.release();
    },
  );
});
