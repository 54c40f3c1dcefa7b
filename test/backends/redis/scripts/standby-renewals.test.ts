import { CLOCK, LATER, ScriptWorld } from './script-world.js';

const MINUTE = 60_000;
const EARLIER = 1;

/** Locks and leases of `c:1`, as the renewals of each kind find them, and the keys whose lives the leases are. */
const KINDS = {
  'renew-reentrant': { keys: ['a'], lives: ['a'] },
  'renew-fair': { keys: ['a', 'queue:{a}', 'timeouts:{a}', 'heartbeats:{a}'], lives: ['a'] },
  'renew-flight': { keys: ['a', 'forgotten:{a}'], lives: ['a'] },
  'renew-write': { keys: ['a', '{a}:c:1:rwlock_timeout:1'], lives: ['a'] },
  'renew-read': { keys: ['a', '{a}:c:1:rwlock_timeout:1'], lives: ['a', '{a}:c:1:rwlock_timeout:1'] },
} as const;

/** The thread that renews while the event loop is blocked does not know what the loop does. */
describe('a renewal of a standby', () => {
  const world = new ScriptWorld();

  const hold = async (script: keyof typeof KINDS, lease: number) => {
    const { redis } = world;
    if (script === 'renew-read') {
      await redis.hset('a', { mode: 'read', 'c:1': '1' });
      await redis.set('{a}:c:1:rwlock_timeout:1', '1', 'PX', lease);
    } else if (script === 'renew-write') await redis.hset('a', { mode: 'write', 'c:1:write': '1' });
    else await redis.hset('a', 'c:1', '1');
    await redis.pexpire('a', lease);
  };

  describe.each(Object.entries(KINDS))('%s', (name, { keys, lives }) => {
    const script = name as keyof typeof KINDS;
    const renew = (limit: string | number, owner = 'c:1') =>
      world.run(script, [...keys], [limit, 'PUBLISH', MINUTE, owner]);

    it('makes a lease longer', async () => {
      await hold(script, 20_000);
      expect(await renew(LATER)).toEqual([expect.any(Number), 1]);
      for (const key of lives) await world.expectLease(key, MINUTE);
    });

    it('makes no lease shorter, and tells nobody', async () => {
      await hold(script, 2 * MINUTE);
      const heard = await world.published(async () => {
        expect(await renew(LATER)).toEqual([expect.any(Number), 1]);
      });
      expect(heard).toEqual([]);
      for (const key of lives) await world.expectLease(key, 2 * MINUTE);
    });

    it('does nothing after its time', async () => {
      await hold(script, 20_000);
      expect(await renew(EARLIER)).toEqual(['expired', expect.any(Number)]);
      for (const key of lives) await world.expectLease(key, 20_000);
    });

    it('does nothing for an owner that has given the lock back', async () => {
      await hold(script, 20_000);
      expect(await renew(LATER, 'c:2')).toEqual([expect.any(Number), 0]);
      for (const key of lives) await world.expectLease(key, 20_000);
    });
  });

  it.each([
    [20_000, LATER, MINUTE],
    [2 * MINUTE, LATER, 2 * MINUTE],
    [20_000, EARLIER, 20_000],
  ])('of one of several that hold a lock for %d ms, until %s, leaves it %d ms', async (lease, limit, left) => {
    const now = await world.now();
    await world.redis.zadd('a', now + lease, 'c:1', now + lease, 'c:2');
    await world.redis.pexpire('a', lease);
    await world.run('renew-permits', ['a'], [limit, 'PUBLISH', MINUTE, 'c:1']);
    const ends = Number(await world.redis.zscore('a', 'c:1')) - now;
    expect(ends).toBeGreaterThanOrEqual(left);
    expect(ends).toBeLessThan(left + 10_000);
  });

  it.each([
    [20_000, LATER, MINUTE],
    [2 * MINUTE, LATER, 2 * MINUTE],
    [20_000, EARLIER, 20_000],
  ])('of a permit that is held for %d ms, until %s, leaves it %d ms', async (lease, limit, left) => {
    const now = await world.now();
    const id = '1'.repeat(32);
    const raw = Buffer.from(id, 'hex');
    await world.redis.zadd('held', now + lease, raw);
    const reply = await world.run('renew-permits-1', ['held'], [limit, MINUTE, id]);
    expect(reply).toEqual(limit === LATER ? '1' : ['expired', expect.any(Number)]);
    const ends = Number(await world.redis.zscore('held', raw)) - now;
    expect(ends).toBeGreaterThanOrEqual(left);
    expect(ends).toBeLessThan(left + 10_000);
  });

  it('leaves the clock of tokens alone', async () => {
    await hold('renew-reentrant', 20_000);
    await world.run('renew-reentrant', ['a'], [LATER, 'PUBLISH', MINUTE, 'c:1']);
    expect(await world.redis.exists(CLOCK)).toBe(0);
  });
});
