import type { LockType } from '../../../lib/backends/lock-backend.js';
import { LockKeyError } from '../../../lib/engine/errors.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { CLIENT, RedisWorld } from './redis-world.js';

const TYPES: readonly LockType[] = ['reentrant', 'fair', 'read', 'write', 'fenced'];

/** The value of a hash field that looks like a number of holds. A script that counted to it would take minutes. */
const HUGE = '10000000000';

const FOREIGN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'a counter': { views: HUGE },
  'a counter of something read': { mode: 'read', views: HUGE },
  'a counter of something written': { mode: 'write', 'views:write': HUGE },
  'a setting': { mode: 'dark' },
  'settings, and something like an owner': { mode: 'dark', [`${CLIENT}:1`]: '1' },
  'an owner and something else': { [`${CLIENT}:1`]: '1', views: HUGE },
  'a reader and something else': { mode: 'read', [`${CLIENT}:1`]: '1', views: HUGE },
  'a client with braces': { 'a{b}:1': '1' },
  'an owner in two lines': { 'a\nb:1': '1' },
  'an owner of a megabyte': { [`${'a'.repeat(1_000_000)}:1`]: '1' },
};

describe('a hash that is not a lock', () => {
  const world = new RedisWorld();
  let locks: LockService;
  beforeEach(async () => {
    await world.redis.flushall();
    locks = createLockService({ connection: world.server.url, commandTimeout: '20s' }); // a megabyte takes a busy server long
  });
  afterEach(() => locks.close());

  const contents = async () => [await world.redis.dump('lock:stats'), await world.redis.pttl('lock:stats')];

  describe.each(Object.entries(FOREIGN))('but %s', (_what, fields) => {
    beforeEach(() => world.redis.hset('lock:stats', fields));

    it.each(TYPES)('refuses a %s lock of its name at once, and stays as it is', async (type) => {
      const before = await contents();
      await expect(locks.acquire('stats', { type })).rejects.toThrow(LockKeyError);
      await expect(locks.tryAcquire('stats', { type })).rejects.toThrow(/'stats' cannot be used: .* is not a lock/);
      if (type !== 'fair') await expect(locks.acquire(['free', 'stats'], { type })).rejects.toThrow(LockKeyError);
      expect(await locks.isLocked('free')).toBe(false);
      expect(await contents()).toEqual(before);
    });

    it('is not listed, not released, and stays as it is', async () => {
      const before = await contents();
      const lease = await locks.acquire('order');
      expect((await locks.list()).locks.map(({ name }) => name)).toEqual(['order']);
      for (const asked of [
        locks.inspect('stats'),
        locks.isLocked('stats'),
        locks.forceRelease('stats'),
        locks.forceRelease('stats', { owners: ['views', `${CLIENT}:1`] }),
        locks.getReadWriteLock('stats').writeLock().forceUnlock(),
      ])
        await expect(asked).rejects.toThrow(LockKeyError);
      expect(await contents()).toEqual(before);
      await lease.release();
    });
  });

  it.each([
    ['Redisson', `${CLIENT}:77`],
    ['a ticket', `${CLIENT}:t-0a1b2c3d4e5f60718293a4b5c6d7e8f901234567`],
  ])('is none of those with an owner of %s', async (_whose, owner) => {
    await world.redis.hset('lock:stats', owner, '1');
    await world.redis.pexpire('lock:stats', 60_000);
    expect((await locks.list()).locks).toMatchObject([{ name: 'stats', type: 'exclusive', owners: [{ owner }] }]);
    expect(await locks.tryAcquire('stats')).toBeNull();
    expect(await locks.forceRelease('stats')).toBe(true);
    expect(await world.keys()).not.toContain('lock:stats');
  });
});

describe('a lock whose readers hold it more often than can be', () => {
  const world = new RedisWorld();
  const key = 'lock:read';
  const reader = (n: number) => `${CLIENT}:${n}`;
  beforeEach(async () => {
    await world.redis.flushall();
    await world.redis.config('SET', 'slowlog-log-slower-than', '10000000'); // microseconds, far more than a stall
    await world.redis.slowlog('RESET');
    await world.redis.hset(key, { mode: 'read', [reader(1)]: HUGE, [reader(2)]: 'many' });
    await world.redis.set(`{${key}}:${reader(1)}:rwlock_timeout:1`, '1', 'PX', 60_000);
    await world.redis.pexpire(key, 60_000);
  });
  afterEach(async () => {
    expect(await world.redis.slowlog('GET')).toEqual([]);
  });

  it('is inspected without keeping the server busy', async () => {
    const backend = world.backend();
    expect((await backend.inspect(key)).owners).toMatchObject([{ owner: reader(1) }]);
    expect(await backend.waits.holders(key)).toEqual([reader(1)]);
  });

  it('is released by force', async () => {
    expect(await world.backend().forceRelease(key)).toEqual([reader(1)]);
    expect(await world.keys()).toEqual([]);
  });

  it('is refused to a writer, and shared by a reader', async () => {
    const backend = world.backend();
    expect(await backend.acquire(world.request('write', { key }))).toMatchObject({
      acquired: false,
      holder: reader(1),
    });
    const mine = world.request('read', { key });
    expect(await backend.acquire(mine)).toMatchObject({ acquired: true });
    expect(await backend.renew({ ...mine, leaseTime: 1_000 })).toBe(true);
    expect(await backend.release(mine)).toMatchObject({ released: true });
  });

  it('is free where none of them has a lease', async () => {
    await world.redis.del(`{${key}}:${reader(1)}:rwlock_timeout:1`);
    const backend = world.backend();
    const mine = world.request('write', { key });
    expect(await backend.acquire(mine)).toMatchObject({ acquired: true });
    expect(await backend.release(mine)).toMatchObject({ released: true });
  });
});
