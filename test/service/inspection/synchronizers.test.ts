import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';
import type { ListedSynchronizer, ListOptions } from '../../../lib/service/lock-inspection.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { openPlace, PLACES, Place } from '../../support/places.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';

async function listAll(locks: LockService, options: ListOptions = {}): Promise<ListedSynchronizer[]> {
  const all = new Map<string, ListedSynchronizer>();
  let cursor: string | undefined;
  do {
    const page = await locks.list({ ...options, cursor });
    for (const each of page.synchronizers) all.set(each.name, each);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return [...all.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}

describe.each(PLACES)('semaphores and latches in %s', (name) => {
  const place = openPlace(name);

  it('are listed and inspected by their type, with what is taken of what, and apart from locks', async () => {
    const [{ locks }, { locks: other }] = [place.service(), place.service()];
    await locks.acquire('order:42');
    await locks.getSemaphore('mail', { permits: 10 }).acquire(7);
    await other.getPermitExpirableSemaphore('cad', { permits: 5 }).acquire('20s');
    await other.getCountDownLatch('import').trySetCount(4);
    await other.getCountDownLatch('import').countDown();
    const permits = [{ id: expect.stringMatching(/^[0-9a-f]{16}$/), mine: false, remainingTime: expect.any(Number) }];
    const synchronizers = [
      { name: 'cad', type: 'permit-expirable-semaphore', count: 4, total: 5, taken: 1, permits, waiting: 0 },
      { name: 'import', type: 'count-down-latch', count: 3, total: 4, permits: [], waiting: 0 },
      { name: 'mail', type: 'semaphore', count: 3, total: 10, taken: 7, permits: [], waiting: 0 },
    ];
    expect(await listAll(locks)).toEqual(synchronizers);
    expect((await locks.list({ count: 1_000 })).locks.map((lock) => lock.name)).toEqual(['order:42']);
    for (const { name, waiting, ...synchronizer } of synchronizers)
      expect(await locks.inspect(name)).toEqual({
        locked: false,
        type: synchronizer.type,
        owners: [],
        waiting,
        line: [],
        synchronizer,
      });
    expect(await locks.inspect('order:42')).not.toHaveProperty('synchronizer');
    expect(await locks.inspect('nothing')).toMatchObject({ locked: false, type: 'free' });
    expect(await listAll(locks, { match: '*a*' })).toEqual([synchronizers[0], synchronizers[2]]);
  });

  it('come in pages with the locks, which together have all of them', async () => {
    const { locks } = place.service();
    const names = Array.from({ length: 120 }, (_, n) => `n:${n}`);
    await Promise.all(names.map((each) => locks.getSemaphore(each, { permits: 1 }).acquire()));
    await Promise.all(names.map((each) => locks.acquire(`lock-${each}`)));
    expect((await listAll(locks, { count: 20 })).map((each) => each.name)).toEqual([...names].sort());
    expect((await listAll(locks, { count: 10_000 })).map((each) => each.name)).toEqual([...names].sort());
  });

  it('have holders of permits that are clients, even if they hold no locks', async () => {
    const { locks: holder } = place.service({ applicationName: 'drawings' });
    const { locks: viewer } = place.service();
    const id = await holder.getPermitExpirableSemaphore('cad', { permits: 2 }).acquire();
    const seen = async (locks: LockService) => (await locks.inspect('cad')).synchronizer?.permits ?? [];
    await until(async () => (await seen(viewer))[0].client !== undefined, 20_000);
    const [permit] = await seen(viewer);
    expect(permit).toMatchObject({ mine: false, client: { application: 'drawings', pid: process.pid } });
    expect(permit.id).toBe(id.slice(0, 16));
    expect(await seen(holder)).toMatchObject([{ mine: true }]);
    expect(JSON.stringify(await viewer.inspect('cad'))).not.toContain(id);
    await holder.getPermitExpirableSemaphore('cad').release(id);
    expect(await seen(viewer)).toEqual([]);
  });

  it('count the callers of this process that wait', async () => {
    const { locks } = place.service();
    const [mail, cad] = [locks.getSemaphore('mail'), locks.getPermitExpirableSemaphore('cad')];
    for (const semaphore of [mail, cad]) await semaphore.trySetPermits(0);
    const latch = locks.getCountDownLatch('import');
    await latch.trySetCount(1);
    const waits = [mail.acquire(), mail.acquire(), cad.acquire(), latch.await()];
    await until(async () => {
      const waiting = (await listAll(locks)).map((each) => [each.name, each.waiting]);
      return JSON.stringify(waiting) === '[["cad",1],["import",1],["mail",2]]';
    });
    expect((await locks.inspect('mail')).waiting).toBe(2);
    await mail.release(2);
    await cad.addPermits(1);
    await latch.countDown();
    await Promise.all(waits);
  });

  it('are refused as locks, as before', async () => {
    const { locks } = place.service();
    await locks.getSemaphore('mail', { permits: 1 }).acquire();
    for (const call of [locks.isLocked('mail'), locks.tryAcquire('mail'), locks.forceRelease('mail')])
      await expect(call).rejects.toMatchObject({ name: 'LockKeyError' });
    expect(await locks.inspect('mail')).toMatchObject({ type: 'semaphore', synchronizer: { taken: 1 } });
  });
});

it('the holders of many permits are found among many clients without comparing each with each', async () => {
  const place = await Place.open('memory');
  const backend = new MemoryBackend({ runtime: nodeRuntime, store: new MemoryStore() });
  const { locks } = place.service({ backend });
  const about = {
    application: 'shop',
    host: 'web-7',
    pid: 7,
    version: '',
    since: 0,
    held: 1,
    waiting: 0,
    longestWait: 0,
  };
  const clients = Array.from({ length: 500 }, (): string => randomUUID());
  for (const clientId of clients)
    await backend.directory.writeClient({ ...about, clientId, holds: [], waits: [] }, 60_000);
  for (let n = 0; n < 10; n++) {
    const semaphore = locks.getPermitExpirableSemaphore(`cad:${n}`, { permits: 50 });
    await Promise.all(Array.from({ length: 50 }, () => semaphore.acquire('1m')));
  }
  const { replaceAll } = String.prototype;
  let compared = 0;
  String.prototype.replaceAll = function (this: string, ...args: [never, never]) {
    if (clients.includes(String(this))) compared++;
    return replaceAll.apply(this, args);
  } as typeof replaceAll;
  try {
    expect((await locks.list()).synchronizers).toHaveLength(10);
  } finally {
    String.prototype.replaceAll = replaceAll;
  }
  expect(compared).toBeLessThan(clients.length * 10);
  await place.closeServices();
  await place.close();
});

describe('semaphores and latches on Redis', () => {
  let redis: RedisServer;
  let client: Redis;
  let place: Place;
  const keyPrefix = 'lock:';
  beforeAll(async () => {
    redis = await startRedis();
    client = redis.client();
    place = await Place.open('memory');
  });
  beforeEach(() => client.flushall());
  afterEach(() => place.closeServices());
  afterAll(async () => {
    await place.close();
    await redis.stop();
  });

  it('may have any content: they are shown as far as that makes sense, and break nothing', async () => {
    const { locks } = place.service({ backend: undefined, connection: redis.url, keyPrefix });
    const noteOf = (name: string) => `nestjs_redis_lock_counter:{${keyPrefix}${name}}`;
    const forged: readonly (readonly [note: Record<string, string>, count: string, shown: object | undefined])[] = [
      [{ type: '<b>', total: '5' }, '3', { type: 'counter', count: 3, permits: [] }],
      [{ type: 'semaphore', total: 'x'.repeat(100_000) }, '3', { type: 'semaphore', count: 3, permits: [] }],
      [{ type: 'semaphore', total: '1e9' }, '3', { type: 'semaphore', count: 3, permits: [] }],
      [{ type: 'count-down-latch', total: '9' }, '-3', { type: 'counter', count: -3, permits: [] }],
      [{ type: 'semaphore', total: '5' }, '3.5', undefined],
      [{ type: 'semaphore', total: '5' }, '12345678901234567890', undefined],
      [{ total: '5' }, '7', { type: 'counter', count: 7, permits: [] }],
    ];
    for (const [n, [note, count]] of forged.entries()) {
      await client.hset(noteOf(`n${n}`), note);
      await client.set(`${keyPrefix}n${n}`, count);
    }
    await client.set(noteOf('text'), 'x');
    await client.hset(noteOf('gone'), { type: 'semaphore', total: 5 });
    await client.hset('nestjs_redis_lock_counter:{', { type: 'semaphore', total: 5 });
    await client.hset('nestjs_redis_lock_counter:{}', { type: 'semaphore', total: 5 });
    await client.set(`${keyPrefix}text`, 5);
    await client.zadd(`{${keyPrefix}text}:timeout`, '+inf', 'x', '-inf', 'y');
    const shown = new Map((await locks.list()).synchronizers.map(({ name, waiting: _, ...all }) => [name, all]));
    for (const [n, [, , expected]] of forged.entries()) expect(shown.get(`n${n}`)).toEqual(expected);
    expect(shown.size).toBe(forged.filter(([, , expected]) => expected !== undefined).length);
    expect((await locks.inspect('text')).synchronizer).toMatchObject({ count: 6, total: 7, taken: 1 });
    await client.set(`{${keyPrefix}text}:timeout`, 'no zset');
    expect((await locks.inspect('text')).synchronizer).toMatchObject({ type: 'counter', count: 5 });
    // They do not disturb other callers either.
    await locks.getSemaphore('text').acquire(5);
    expect(await locks.getSemaphore('text').tryAcquire()).toBe(false);
    await client.del(`${keyPrefix}text`);
    await client.set(noteOf('text'), 'x');
    expect(await locks.getSemaphore('text').trySetPermits(2)).toBe(true);
    expect(await locks.inspect('text')).toMatchObject({ type: 'semaphore', synchronizer: { count: 2, total: 2 } });
  });

  it('are listed if the prefix is empty, without other keys', async () => {
    const { locks } = place.service({ backend: undefined, connection: redis.url, keyPrefix: '' });
    await client.set('visits', 7);
    await locks.acquire('order:42');
    await locks.getSemaphore('mail', { permits: 2 }).acquire();
    await locks.getSemaphore('{mail}:sms', { permits: 2 }).acquire();
    expect((await listAll(locks)).map(({ name }) => name)).toEqual(['mail', '{mail}:sms']);
    const page = await locks.list({ count: 1_000 });
    expect(page.locks.map(({ name }) => name)).toEqual(['order:42']);
  });
});
