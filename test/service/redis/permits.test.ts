import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { LockBusyError, LockKeyError } from '../../../lib/engine/errors.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import type { RedisLockOptions } from '../../../lib/service/redis-lock-options.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';

/** The most that may hold the lock. */
const MOST = 3;
const LEASE = 4_000;

describe('a lock that n may hold, on Redis', () => {
  let server: RedisServer;
  let redis: Redis;
  const opened: LockService[] = [];
  const open = (options: RedisLockOptions = {}) => {
    const locks = createLockService({ connection: server.url, waitTime: '30s', watchdogTimeout: LEASE, ...options });
    opened.push(locks);
    return locks;
  };
  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.url);
  });
  beforeEach(() => redis.flushall());
  afterEach(() => Promise.all(opened.splice(0).map((locks) => locks.close())));
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });

  /** Everything but what tokens are drawn from, and the records of clients. */
  const keys = async () => (await redis.keys('*')).filter((key) => !/_clock$|_client|_lock_token:/.test(key));

  it('is a sorted set of its holders, which lasts as long as the last of their leases', async () => {
    const locks = open();
    const long = await locks.acquire('export', { permits: MOST, leaseTime: '20s' });
    const short = await locks.acquire('export', { permits: MOST, leaseTime: '5s' });
    expect(await redis.zrange('lock:export', '0', '-1')).toEqual([short.owner, long.owner]);
    expect(await redis.pttl('lock:export')).toBeGreaterThan(19_000);
    await long.release();
    expect(await redis.pttl('lock:export')).toBeLessThanOrEqual(5_000);
    await short.release();
    expect(await keys()).toEqual([]);
  });

  it('is listed, inspected and released by force with its holders', async () => {
    const [locks, others] = [open(), open()];
    const leases = [
      await locks.acquire('export', { permits: MOST }),
      await others.acquire('export', { permits: MOST }),
      await others.acquire('report', { permits: 1 }),
    ];
    const { locks: listed } = await locks.list();
    expect(listed.map(({ name, type, owners }) => [name, type, owners.length]).sort()).toEqual([
      ['export', 'permits', 2],
      ['report', 'permits', 1],
    ]);
    expect((await locks.inspect('export')).owners.map(({ mine }) => mine).sort()).toEqual([false, true]);
    expect(await locks.forceRelease('export', { owners: [leases[1].owner] })).toBe(true);
    await until(() => !leases[1].held);
    expect(leases[0].held).toBe(true);
    await leases[0].release();
    await leases[2].release();
  });

  it('lists no sorted set that is not a lock, with an empty prefix either', async () => {
    await redis.zadd('scores', 1, 'ann', 2, 'bob');
    const locks = open({ keyPrefix: '' });
    const fair = [await locks.acquire('queue', { type: 'fair' })];
    const waiting = locks.acquire('queue', { type: 'fair' });
    await until(async () => (await redis.exists('redisson_lock_timeout:{queue}')) === 1);
    const lease = await locks.acquire('export', { permits: MOST });
    expect((await locks.list()).locks.map(({ name }) => name).sort()).toEqual(['export', 'queue']);
    await lease.release();
    await fair[0].release();
    await (await waiting).release();
  });

  it.each([
    ['members that are not owners', ['1', 'ann', '2', 'bob'], 60_000],
    ['owners, but without a lease', ['1', 'a:1'], 0],
  ])('refuses a sorted set of %s, and leaves it as it is', async (_what, members, lease) => {
    await redis.zadd('lock:scores', ...(members as [string, string]));
    if (lease > 0) await redis.pexpire('lock:scores', lease);
    const locks = open();
    const before = await redis.dump('lock:scores');
    for (const options of [{ permits: MOST }, {}, { type: 'fair' }, { type: 'read' }, { type: 'write' }] as const)
      await expect(locks.acquire('scores', options)).rejects.toThrow(LockKeyError);
    await expect(locks.forceRelease('scores')).rejects.toThrow(LockKeyError);
    expect(await redis.dump('lock:scores')).toBe(before);
    await expect(locks.acquire('scores', { permits: MOST })).rejects.toThrow(/a sorted set with other members/);
  });

  it('and locks of other types exclude each other', async () => {
    const [locks, others] = [open(), open()];
    for (const type of ['reentrant', 'fair', 'read', 'write', 'fenced'] as const) {
      const one = await locks.acquire('export', { permits: MOST });
      const busy = others.acquire('export', { type, waitTime: 0 });
      await expect(busy).rejects.toThrow(LockBusyError);
      const waiting = others.acquire('export', { type });
      await sleep(30);
      await one.release();
      const other = await waiting;
      await expect(locks.acquire('export', { permits: MOST, waitTime: 0 })).rejects.toThrow(LockBusyError);
      const back = locks.acquire('export', { permits: MOST });
      await sleep(30);
      await other.release();
      await (await back).release();
    }
    expect(await keys()).toEqual([]);
  });
});
