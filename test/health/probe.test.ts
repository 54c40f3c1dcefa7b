import { Redis } from 'ioredis';
import { NodeHealth } from '../../lib/backends/node-outage.js';
import { createLockService } from '../../lib/service/create-lock-service.js';
import type { LockService } from '../../lib/service/lock-service.js';
import type { RedisLockOptions } from '../../lib/service/redis-lock-options.js';
import type { LockServiceHealth } from '../../lib/service/service-health.js';
import { openVirtualWorld } from '../support/lock-world.js';
import { errorOf, latch } from '../support/section.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';
import { answerAfter, refused } from '../support/watched/watched-backend.js';

const logger = { warn: () => {}, error: () => {}, log: () => {} };

describe('health() on Redis', () => {
  let redis: RedisServer;
  let admin: Redis;
  const services: LockService[] = [];
  beforeAll(async () => {
    redis = await startRedis();
    admin = redis.client();
  });
  afterEach(async () => {
    await Promise.all(services.splice(0).map((locks) => locks.close()));
    await admin.config('SET', 'maxmemory', '0');
  });
  afterAll(() => redis.stop());

  const open = (options: RedisLockOptions = {}) => {
    const locks = createLockService({ connection: redis.url, logger, ...options });
    services.push(locks);
    return locks;
  };

  it('is down with a user that may not lock, and names the reason', async () => {
    const rules = ['~*', '&*', '+@all', '-@write', '+evalsha', '+eval'];
    await admin.call('ACL', 'SETUSER', 'reader', 'reset', 'on', '>a-password', ...rules);
    const locks = open({ connection: redis.url.replace('//', '//reader:a-password@') });
    expect(await locks.health()).toMatchObject({
      healthy: false,
      problems: [expect.stringMatching(/^no lock can be acquired: redis .*(NOPERM|can't run)/)],
      responseTime: expect.any(Number),
    });
  });

  it.each([
    ['without a right', ['~*', '&*', '+@connection'], /'(time|evalsha)'|evalsha|time/],
    ['without the right to a command', ['~*', '&*', '+@all', '-hset'], /hset|can't run/],
    ['without its keys', ['~other:*', '&*', '+@all'], /keys?\b/],
  ])('is in the log before the first call fails, for a user %s', async (_what, rules, right) => {
    await admin.call('ACL', 'SETUSER', 'limited', 'reset', 'on', '>a-password', ...rules);
    const connection = redis.url.replace('//', '//limited:a-password@');
    const lent = new Redis(connection);
    lent.on('error', () => {});
    // Of a node-redis client, the user is not known. It is asked for its rights only if it may not even run TIME.
    const nodeRedis = rules.includes('+@connection') ? [{ client: 'node-redis', url: connection } as const] : [];
    for (const client of [connection, lent, ...nodeRedis]) {
      const warnings: string[] = [];
      open({ connection: client, logger: { ...logger, warn: (message: string) => void warnings.push(message) } });
      await until(() => warnings.length > 0);
      expect(warnings[0]).toMatch(/^No lock can be acquired: redis .*doctor/);
      expect(warnings[0]).toMatch(right);
      expect(warnings).toHaveLength(1);
    }
    lent.disconnect();
  });

  it('is down while Redis has no memory left', async () => {
    const locks = open();
    await admin.config('SET', 'maxmemory', '1');
    expect(await locks.health()).toMatchObject({ healthy: false, problems: [expect.stringMatching(/OOM/)] });
  });

  it('is up a second after Redis has memory again, and at once after the next lock', async () => {
    const locks = open();
    await admin.config('SET', 'maxmemory', '1');
    expect(await locks.health()).toMatchObject({ healthy: false });
    await admin.config('SET', 'maxmemory', '0');
    await (await locks.acquire('order')).release();
    expect(await locks.health()).toMatchObject({ healthy: true, problems: [] });
    await admin.config('SET', 'maxmemory', '1');
    await errorOf(locks.acquire('order', { waitTime: 0 }));
    await admin.config('SET', 'maxmemory', '0');
    const since = Date.now();
    await until(async () => (await locks.health()).healthy);
    expect(Date.now() - since).toBeLessThan(8_000);
  });

  it('is up after a forced release and a lost lease, which are details', async () => {
    const locks = open();
    await locks.acquire('order');
    await locks.forceRelease('order');
    expect(await locks.health()).toMatchObject({ healthy: true, problems: [], recentLosses: 1 });
  });

  it('leaves nothing behind, and its lock is in no list', async () => {
    const locks = open();
    const events: string[] = [];
    for (const event of ['acquired', 'released', 'busy', 'failed'] as const) locks.on(event, () => events.push(event));
    const before = await admin.keys('lock:*');
    await locks.health();
    expect(await admin.keys('lock:*')).toEqual(before);
    await admin.hset('lock:nestjs-redis-lock:health', `${'0'.repeat(8)}-0000-4000-8000-${'0'.repeat(12)}:1`, '1');
    expect(await locks.health()).toMatchObject({ healthy: true });
    const { locks: listed } = await locks.list();
    expect(listed).toEqual([]);
    await admin.del('lock:nestjs-redis-lock:health');
    expect(events).toEqual([]);
  });

  it('does not keep close() waiting', async () => {
    const locks = open({ commandTimeout: 20_000 });
    await locks.connect();
    redis.pause();
    const checked = locks.health();
    const started = Date.now();
    await locks.close();
    redis.resume();
    expect(Date.now() - started).toBeLessThan(10_000);
    expect(await checked).toMatchObject({ healthy: false });
    expect(await locks.health()).toMatchObject({
      healthy: false,
      problems: expect.arrayContaining(['the lock service is shutting down']),
    });
  });
});

describe('health() of a quorum', () => {
  it('is up while a majority grants locks, and down with fewer', async () => {
    const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
    // The first answer may need longer than a node has, while it is connected.
    const healthOf = async (locks: LockService, expected: (health: LockServiceHealth) => boolean) => {
      let health = await locks.health();
      for (; !expected(health); health = await locks.health());
      return health;
    };
    const locks = createLockService({ quorum: servers.map(({ url }) => url), logger });
    expect(await healthOf(locks, ({ healthy }) => healthy)).toMatchObject({ healthy: true, problems: [] });
    await locks.close();
    const fill = (n: number) => servers[n].client().config('SET', 'maxmemory', '1');
    await fill(0);
    const stillUp = createLockService({ quorum: servers.map(({ url }) => url), logger });
    expect(await healthOf(stillUp, ({ healthy }) => healthy)).toMatchObject({ healthy: true });
    await stillUp.close();
    await fill(1);
    const down = createLockService({ quorum: servers.map(({ url }) => url), logger });
    const outOfMemory = ({ healthy, problems }: LockServiceHealth) =>
      healthy || problems.some((why) => why.includes('OOM'));
    expect(await healthOf(down, outOfMemory)).toMatchObject({
      healthy: false,
      problems: [expect.stringMatching(/OOM/)],
    });
    await down.close();
    await Promise.all(servers.map((server) => server.stop()));
  });
});

describe('health()', () => {
  const world = openVirtualWorld();

  it('takes its lock at most every ten seconds, and releases it', async () => {
    const { locks, backend, runtime } = await world.process();
    await Promise.all([locks.health(), locks.health()]);
    expect([backend.count('acquire'), backend.count('release')]).toEqual([1, 1]);
    await runtime.advance(9_900);
    await locks.health();
    expect(backend.count('acquire')).toBe(1);
    await runtime.advance(200);
    await locks.health();
    expect([backend.count('acquire'), backend.count('release')]).toEqual([2, 2]);
    expect(runtime.timers).toBe(0);
  });

  it('tries again a second after it could not lock, or after the next lock', async () => {
    const { locks, backend, runtime } = await world.process();
    backend.disturb(refused, 'acquire');
    expect(await locks.health()).toMatchObject({ healthy: false });
    await runtime.advance(900);
    await locks.health();
    expect(backend.count('acquire')).toBe(1);
    backend.heal();
    await runtime.advance(200);
    expect(await locks.health()).toMatchObject({ healthy: true, problems: [] });
    expect(backend.count('acquire')).toBe(2);
  });

  it('is down after a refusal, until a lock is granted or ten seconds have passed', async () => {
    const { locks, backend, runtime } = await world.process();
    await locks.health();
    backend.disturb(refused, 'acquire');
    await errorOf(locks.tryAcquire('order'));
    backend.heal();
    expect(await locks.health()).toMatchObject({
      healthy: false,
      problems: ['a lock was refused: the connection is closed (0 s ago)'],
    });
    await (await locks.acquire('order')).release();
    expect(await locks.health()).toMatchObject({
      healthy: true,
      lastRefusal: 'the connection is closed (0 s ago)',
    });
    await runtime.advance(60_000);
    expect((await locks.health()).lastRefusal).toBeUndefined();
  });

  it.each([
    ['the same', true],
    ['another', false],
  ])('after a refusal, a grant of its own lock on %s node of a cluster: healthy is %s', async (_, isSame) => {
    const { locks, backend, runtime } = await world.process();
    const [probed, other] = ['a:6379', 'b:6379'].map((address) => new NodeHealth(address, runtime, () => {}));
    const node = (key: string) => (isSame || key.endsWith(':health') ? probed : other);
    Object.defineProperty(backend, 'health', { value: { node, listen() {}, ping() {} } });
    backend.disturb(refused, 'acquire');
    await errorOf(locks.tryAcquire('order'));
    backend.heal();
    await runtime.advance(1_500);
    await locks.health();
    expect((await locks.health()).healthy).toBe(isSame);
  });

  it('counts as healthy if another process holds its lock just then', async () => {
    const [one, other] = [await world.process(), await world.process()];
    const answer = latch();
    one.backend.disturb(answerAfter(answer.promise), 'release');
    const checked = one.locks.health();
    await other.runtime.settle();
    expect(await other.locks.health()).toMatchObject({ healthy: true });
    answer.open();
    await checked;
  });
});
