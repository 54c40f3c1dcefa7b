import type { Redis } from 'ioredis';
import { isTransferable, type LockType } from '../../../lib/backends/lock-backend.js';
import { RedisBackend } from '../../../lib/backends/redis/redis-backend.js';
import { LockNotOwnedError } from '../../../lib/engine/errors.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { isClientRecord } from '../../support/left-behind.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';

/** An attacker who has access to the same Redis, knows the lock names, and claims to hold the lock. */
describe('a lock that another client claims', () => {
  let redis: RedisServer;
  let watch: Redis;
  let locks: LockService;
  let other: LockService;
  let forger: RedisBackend;

  beforeAll(async () => {
    redis = await startRedis();
    watch = redis.client();
    [locks, other] = [1, 2].map(() => createLockService({ connection: redis.url }));
    forger = new RedisBackend({
      connection: redis.url,
      runtime: nodeRuntime,
      commandTimeout: 2_000,
      shardedPubSub: 'auto',
      minReplicas: 0,
      onError: () => {},
    });
  });
  afterAll(async () => {
    await Promise.all([locks.close(), other.close(), forger.close()]);
    await redis.stop();
  });

  /** Everything in Redis except expiry times and client records, which are rewritten every 10 s. */
  async function contents(): Promise<Record<string, unknown>> {
    const keys = (await watch.keys('*'))
      .filter((key) => !isClientRecord(key) && !key.endsWith('nestjs-redis-lock:health'))
      .sort();
    return Object.fromEntries(await Promise.all(keys.map(async (key) => [key, await watch.dump(key)])));
  }

  it.each<LockType>(['reentrant', 'fair', 'read', 'write', 'fenced'])(
    'an owner that does not hold a %s lock cannot release, renew or transfer it',
    async (type) => {
      const lease = await locks.acquire(`claimed:${type}`, { type, leaseTime: '20s' });
      const key = `lock:claimed:${type}`;
      const before = await contents();
      const clientId = lease.owner.slice(0, lease.owner.lastIndexOf(':'));
      for (const owner of ['forger:1', `${clientId}:999`, clientId, `${lease.owner} `, 'mode', '', '*']) {
        const claim = { key, type, owner };
        expect(await forger.release(claim)).toMatchObject({ released: false });
        expect(await forger.renew({ ...claim, leaseTime: 60_000 })).toBe(false);
        if (isTransferable(type)) {
          const transfer = { key, type, from: owner, to: 'forger:2', leaseTime: 60_000, reserve: 0 };
          expect(await forger.transfer(transfer)).toBeUndefined();
        }
        await forger.removeWaiter(claim);
      }
      expect(await contents()).toEqual(before);
      expect(await watch.pttl(key)).toBeLessThanOrEqual(20_000);
      expect(lease.held).toBe(true);
      await lease.release();
    },
  );

  it('other handles get no lease while the lock is held', async () => {
    const lease = await locks.acquire('handled');
    const before = await contents();
    for (const service of [locks, other]) {
      const sides = service.getReadWriteLock('handled');
      for (const handle of [
        service.getLock('handled'),
        service.getFairLock('handled'),
        service.getFencedLock('handled'),
        sides.readLock(),
        sides.writeLock(),
      ]) {
        expect(await handle.tryLock()).toBeNull();
      }
    }
    expect(await contents()).toEqual(before);
    await lease.release();
  });

  it("a released lease cannot extend, run under or release its successor's lock", async () => {
    const first = await locks.acquire('succeeded');
    await first.release();
    const second = await other.acquire('succeeded', { leaseTime: '20s' });
    const before = await contents();
    await first.release();
    await expect(first.extend('60s')).rejects.toThrow(LockNotOwnedError);
    await expect(first.run(() => 'in')).rejects.toThrow(LockNotOwnedError);
    expect(() => first.assertHeld()).toThrow(LockNotOwnedError);
    expect(await contents()).toEqual(before);
    await second.release();
  });

  it('a forged forced-release message does not take the lock', async () => {
    const lease = await locks.acquire('rumoured', { leaseTime: '20s' });
    const bystander = await locks.acquire('quiet');
    const clientId = lease.owner.slice(0, lease.owner.lastIndexOf(':'));
    const channel = `nestjs_redis_lock_client:{${clientId}}`;
    await until(async () => (await watch.pubsub('NUMSUB', channel))[1] === 1);
    const key = 'lock:rumoured';
    const before = await contents();
    const rumours = [
      ...['', 'no', 'null', '7', '"text"', '[]', '{}', '{"key":7,"owners":{}}', '{'.repeat(10_000)],
      ...[
        { key },
        { key, owners: 'all' },
        { key, owners: [null, 1, {}] },
        { key, owners: ['*', clientId, 'forger:1'] },
      ],
      ...[
        { key: 'lock:quiet', owners: [lease.owner] },
        { key: '__proto__', owners: [lease.owner] },
      ],
      ...Array.from({ length: 20 }, () => ({ key, owners: [lease.owner, bystander.owner] })),
    ];
    for (const rumour of rumours)
      await watch.publish(channel, typeof rumour === 'string' ? rumour : JSON.stringify(rumour));
    // A genuine forced release is still noticed after all the forged messages.
    const lost = await locks.acquire('taken away');
    await other.forceRelease('taken away');
    await until(() => !lost.held);
    expect(lease.held && bystander.held).toBe(true);
    expect((await contents())[key]).toEqual(before[key]);
    expect(await watch.pttl(key)).toBeLessThanOrEqual(20_000);
    await lease.release();
    await bystander.release();
  });

  it('a forged message does not let anybody in who waits in line', async () => {
    const lease = await locks.acquire('queued', { leaseTime: '20s' });
    const waiting = other.acquire('queued');
    const turns = 'nestjs_redis_lock_turns:{lock:queued}';
    await until(async () => (await watch.zcard(turns)) === 1);
    const [place] = await watch.zrange(turns, 0, '0');
    const terms = await watch.hget('nestjs_redis_lock_turns_terms:{lock:queued}', place);
    expect(terms).toMatch(/^l r 1 30000 \d+ 0 0 \d+ \d{16} \S+ [-0-9a-f]{36}$/);
    const channel = `nestjs_redis_lock_turn:{lock:queued}:${place.slice(0, place.lastIndexOf(':'))}`;
    let isIn = false;
    void waiting.then(() => {
      isIn = true;
    });
    const nonce = (terms ?? '').split(' ').at(-1);
    const spent = `${place.slice(0, place.lastIndexOf(':'))}:999`;
    for (const text of [
      `${place} granted`,
      ...[`${place} granted forged 7 0 0 30000`, `${place} granted  7 0 0 30000`],
      ...[`${spent} granted ${nonce} 7 0 0 30000`, `${place} granted ${nonce} x 0 0 30000`],
      ...[`${place} granted ${nonce} 7 0 -1 30000`, `${place} granted ${nonce} 7 0 60000 30000`],
      ...[`${place} granted ${nonce} 7 0 0`, `${place} granted ${nonce} 7 0 0 3600000`],
    ])
      expect(await watch.publish(channel, text)).toBe(1);
    await until(async () => (await watch.zcard(turns)) === 1);
    expect(isIn).toBe(false);
    expect(lease.held).toBe(true);
    await lease.release();
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await next.release();
  });

  it('nobody else can release or extend the permits of another service', async () => {
    const semaphore = locks.getPermitExpirableSemaphore('permits');
    await semaphore.trySetPermits(1);
    await semaphore.acquire('20s');
    const before = await contents();
    const theirs = other.getPermitExpirableSemaphore('permits');
    for (const id of ['00'.repeat(16), 'ff'.repeat(16)]) {
      expect(await theirs.tryRelease(id)).toBe(false);
      expect(await theirs.updateLeaseTime(id, '60s')).toBe(false);
      await expect(theirs.release(id)).rejects.toThrow(LockNotOwnedError);
    }
    const { 'lock:permits': free } = await contents();
    expect(free).toEqual(before['lock:permits']);
  });
});
