import { hostname } from 'node:os';
import { jest } from '@jest/globals';
import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import { LockBusyError } from '../../../lib/engine/errors.js';
import type { LockClient } from '../../../lib/service/lock-client.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { openPlace, PLACES, Place } from '../../support/places.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { latch } from '../../support/section.js';
import { startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';

describe.each(PLACES)('clients() in %s', (name) => {
  const place = openPlace(name);

  const clientOf = async (viewer: LockService, application: string): Promise<LockClient | undefined> =>
    (await viewer.clients()).find((client) => client.application === application);

  it('shows who holds what, in what, and since when', async () => {
    const [{ locks }, { locks: viewer }] = [place.service({ applicationName: 'shop-2' }), place.service()];
    const lease = await locks.acquire('order:1', { group: 'payments' });
    await until(async () => (await clientOf(viewer, 'shop-2'))?.holds[0]?.owner === lease.owner, 15_000);
    const client = await clientOf(viewer, 'shop-2');
    expect(client).toMatchObject({
      host: hostname(),
      pid: process.pid,
      held: 1,
      waiting: 0,
      longestWait: 0,
      mine: false,
    });
    expect(client?.holds).toEqual([
      {
        name: 'order:1',
        type: 'reentrant',
        owner: lease.owner,
        group: 'payments',
        method: '',
        heldFor: expect.any(Number),
      },
    ]);
    expect(client?.holds[0].heldFor).toBeGreaterThan(0);
    expect((await viewer.inspect('order:1')).owners[0].client).toMatchObject({
      application: 'shop-2',
      group: 'payments',
    });
    expect((await locks.inspect('order:1')).owners[0].client).toMatchObject({
      application: 'shop-2',
      group: 'payments',
    });
    expect((await viewer.list()).locks[0].owners[0].client).toMatchObject({ application: 'shop-2' });
  });

  it('shows who waits, and for how long', async () => {
    const [{ locks }, { locks: waiter }] = [place.service(), place.service({ applicationName: 'waiter' })];
    const lease = await locks.acquire('order:1');
    const waiting = [waiter.acquire('order:1'), waiter.acquire('order:1')];
    await until(async () => ((await clientOf(locks, 'waiter'))?.longestWait ?? 0) > 1_000, 15_000);
    const client = await clientOf(locks, 'waiter');
    expect(client).toMatchObject({ held: 0, waiting: 2 });
    expect(client?.waits).toMatchObject([{ name: 'order:1', type: 'reentrant', waiters: 2 }]);
    await lease.release();
    for (const each of waiting) await (await each).release();
  });

  it('forgets a client when it closes', async () => {
    const [{ locks }, { locks: viewer }] = [place.service({ applicationName: 'brief' }), place.service()];
    const lease = await locks.acquire('order:1');
    await until(async () => (await clientOf(viewer, 'brief')) !== undefined, 15_000);
    await lease.release();
    await locks.close();
    expect(await clientOf(viewer, 'brief')).toBeUndefined();
  });

  it('tells a caller that gives up who holds the lock, but does not print that with the error as JSON', async () => {
    const { locks } = place.service({ applicationName: 'shop-2' });
    const { locks: waiter } = place.service();
    const lease = await locks.acquire('order:1', { group: 'payments' });
    await until(async () => (await clientOf(waiter, 'shop-2'))?.holds[0]?.owner === lease.owner, 15_000);
    const error = await waiter.acquire('order:1', { waitTime: '1s' }).catch((reason) => reason);
    expect(error).toBeInstanceOf(LockBusyError);
    expect(error.holderClient).toMatchObject({
      application: 'shop-2',
      host: hostname(),
      pid: process.pid,
      group: 'payments',
    });
    expect(error.message).toContain(`held by ${lease.owner} of 'shop-2'`);
    expect(error.message).not.toContain(hostname());
    expect(JSON.stringify({ ...error })).not.toContain('payments');
    const own = await locks.acquire('order:1', { waitTime: 10 }).catch((reason) => reason);
    expect(own.holderClient).toMatchObject({ application: 'shop-2', group: 'payments' });
  });
});

describe('the record of a client', () => {
  it('is not written by short work, and ends with a killed process', async () => {
    const redis = await startRedis();
    const place = await Place.open('memory');
    const { locks } = place.service({ backend: undefined, connection: redis.url });
    const client = redis.client();
    for (let i = 0; i < 50; i++) await locks.withLock('order', async () => {});
    expect(await client.keys('nestjs_redis_lock_client*')).toEqual([]);
    const lease = await locks.acquire('order');
    await until(async () => (await client.keys('nestjs_redis_lock_client*')).length === 2, 15_000);
    for (const key of await client.keys('nestjs_redis_lock_client*')) {
      expect(await client.pttl(key)).toBeGreaterThan(15_000);
      expect(await client.pttl(key)).toBeLessThanOrEqual(30_000);
    }
    await lease.release();
    await place.close();
    expect(await client.keys('*client*')).toEqual([]);
    await redis.stop();
  });
});

describe('the record of a client, as time passes', () => {
  let runtime: VirtualRuntime;
  let store: MemoryStore;
  let place: Place;
  beforeEach(async () => {
    runtime = new VirtualRuntime();
    store = new MemoryStore();
    place = await Place.open('memory');
  });
  afterEach(() => runtime.until(place.close()));

  const open = (applicationName: string, backend = new MemoryBackend({ runtime, store })) =>
    place.service({ applicationName, backend }, runtime).locks;

  it('soon shows what is held and waited for after a time in which there was nothing to show', async () => {
    const [locks, viewer] = [open('shop'), open('viewer')];
    const shown = async () => {
      const client = (await runtime.until(viewer.clients())).find(({ application }) => application === 'shop');
      return { holds: client?.holds.map(({ name }) => name), waits: client?.waits.map(({ name }) => name) };
    };
    const first = await locks.acquire('order:1');
    await runtime.advance(4_000);
    expect(await shown()).toEqual({ holds: ['order:1'], waits: [] });
    await first.release();
    await runtime.advance(4_000);
    expect(await shown()).toEqual({ holds: [], waits: [] });
    const second = await locks.acquire('order:2');
    await runtime.advance(3_000);
    expect(await shown()).toEqual({ holds: ['order:2'], waits: [] });
    await second.release();
    await runtime.advance(4_000);
    expect(await shown()).toEqual({ holds: [], waits: [] });
    const theirs = await viewer.acquire('order:3');
    const waiting = locks.acquire('order:3');
    await runtime.advance(3_000);
    expect(await shown()).toEqual({ holds: [], waits: ['order:3'] });
    await theirs.release();
    await (await runtime.until(waiting)).release();
  });

  it('is not left behind by a write that was under way when the service closes', async () => {
    const [backend, server] = [1, 2].map(() => new MemoryBackend({ runtime, store }));
    const [locks, viewer] = [open('shop', backend), open('viewer')];
    const network = latch();
    jest.spyOn(backend.directory, 'writeClient').mockImplementationOnce(async (...record) => {
      await network.promise;
      await server.directory.writeClient(...record);
    });
    const lease = await locks.acquire('order');
    await runtime.advance(1_500);
    await lease.release();
    const closed = locks.close();
    await runtime.settle();
    network.open();
    await runtime.until(closed);
    expect(await runtime.until(viewer.clients())).toEqual([]);
  });

  it('is read once for all callers that wait for what it holds, and again only after ten seconds', async () => {
    const backend = new MemoryBackend({ runtime, store });
    const [locks, waiter] = [open('shop'), open('waiter', backend)];
    const read = jest.spyOn(backend.directory, 'client');
    const names = ['order:1', 'order:2', 'order:3'];
    for (const name of names) await locks.acquire(name);
    await runtime.advance(3_000);
    const wait = async () => {
      const waits = names.map((name) => waiter.acquire(name, { waitTime: 500 }).catch((reason) => reason));
      for (const error of await runtime.until(Promise.all(waits)))
        expect(error).toMatchObject({ name: 'LockBusyError', holderClient: { application: 'shop' } });
      return read.mock.calls.length;
    };
    expect(await wait()).toBe(1);
    await runtime.advance(5_000);
    expect(await wait()).toBe(1);
    await runtime.advance(6_000);
    expect(await wait()).toBe(2);
  });
});
