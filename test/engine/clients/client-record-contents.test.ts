import type { ActiveWork } from '../../../lib/engine/active-work.js';
import { ClientRecordContents } from '../../../lib/engine/clients/client-record-contents.js';
import { type Linked, LinkedQueue } from '../../../lib/engine/collections/linked-queue.js';
import { openVirtualWorld } from '../../support/lock-world.js';

describe('what the record of a client shows', () => {
  const world = openVirtualWorld();

  const open = async () => {
    const process = await world.process();
    const { work } = process.locks.engine.services;
    const contents = new ClientRecordContents(work, () => 2);
    return { ...process, collect: () => contents.collect(world.runtime.monotonic()) };
  };

  it('is the locks that are held, the oldest first, and the number of permits', async () => {
    const { locks, runtime, collect } = await open();
    await locks.withLock('order', { group: 'payments' }, async ({ owner }) => {
      await runtime.advance(300);
      await locks.withLock('order', async () => {
        const stock = await locks.acquire('stock');
        await runtime.advance(100);
        const about = { type: 'reentrant', method: '' };
        expect(collect()).toEqual({
          held: 4,
          waiting: 0,
          longestWait: 0,
          holds: [
            { ...about, key: locks.engine.services.keyOf('order'), owner, group: 'payments', heldFor: 400 },
            { ...about, key: locks.engine.services.keyOf('stock'), owner: stock.owner, group: '', heldFor: 100 },
          ],
          waits: [],
        });
        await stock.release();
      });
    });
    expect(collect()).toEqual({ held: 2, waiting: 0, longestWait: 0, holds: [], waits: [] });
  });

  it('is the first 20 of many locks', async () => {
    const { locks, collect } = await open();
    const names = Array.from({ length: 25 }, (_, n) => `order:${n}`);
    for (const name of names) await locks.acquire(name);
    const { held, holds } = collect();
    expect(held).toBe(27);
    expect(holds.map(({ key }) => key)).toEqual(names.slice(0, 20).map((name) => locks.engine.services.keyOf(name)));
  });

  it('is the waits, the longest first, counted from when the first of the waiters was seen', async () => {
    const { locks, runtime, collect } = await open();
    const other = await world.process();
    const leases = [await other.locks.acquire('order'), await other.locks.acquire('stock')];
    const waiting = [locks.acquire('stock', { group: 'first' })];
    await runtime.advance(10);
    expect(collect().waits).toMatchObject([{ waiters: 1, waitedFor: 0 }]);
    await runtime.advance(200);
    waiting.push(locks.acquire('order'), locks.acquire('stock', { group: 'second' }));
    await runtime.advance(100);
    expect(collect()).toMatchObject({
      held: 2,
      waiting: 3,
      longestWait: 300,
      waits: [
        { key: locks.engine.services.keyOf('stock'), type: 'reentrant', group: 'first', waiters: 2, waitedFor: 300 },
        { key: locks.engine.services.keyOf('order'), group: '', waiters: 1, waitedFor: 0 },
      ],
    });
    await runtime.advance(50);
    expect(collect().waits.map(({ waitedFor }) => waitedFor)).toEqual([350, 50]);
    for (const lease of leases) await lease.release();
    for (const next of waiting) await (await runtime.until(next)).release();
  });

  it('is, of a waiter that is first now, at least how long others behind it have waited', async () => {
    const { locks, runtime, collect } = await open();
    const other = await world.process();
    const lease = await other.locks.acquire('order');
    const leaving = new AbortController();
    const first = locks.acquire('order', { signal: leaving.signal }).catch(() => {});
    const others = [locks.acquire('order'), locks.acquire('order')];
    await runtime.advance(10);
    collect();
    await runtime.advance(400);
    leaving.abort();
    await first;
    expect(collect().waits).toMatchObject([{ waiters: 2, waitedFor: 400 }]);
    await lease.release();
    for (const next of others) await (await runtime.until(next)).release();
  });

  it('is no more than 20 holds of leases of several locks, and no more than 20 waits, the longest ones', async () => {
    const { locks, runtime, collect } = await open();
    const other = await world.process();
    const names = Array.from({ length: 25 }, (_, n) => `order:${n}`);
    const leases = [await locks.acquire(names.slice(0, 15)), await locks.acquire(names.slice(15))];
    expect([collect().held, collect().holds.length]).toEqual([27, 20]);
    const busy = [];
    for (const name of names) busy.push(await other.locks.acquire(`stock:${name}`));
    const leaving = new AbortController();
    const waiting = [];
    for (const name of names) {
      waiting.push(locks.acquire(`stock:${name}`, { signal: leaving.signal }).catch(() => {}));
      await runtime.advance(10);
      collect();
    }
    const { waits, longestWait } = collect();
    expect(waits.map(({ waitedFor }) => waitedFor)).toEqual(Array.from({ length: 20 }, (_, n) => 240 - 10 * n));
    expect(longestWait).toBe(240);
    leaving.abort();
    await Promise.all(waiting);
    for (const lease of [...leases, ...busy]) await lease.release();
  });
});

describe('the time for which a queue has waited', () => {
  /** A queue of `count` waiters. */
  const queueOf = (count: number) => {
    const waiting = new LinkedQueue<Linked<never> & { readonly terms: object }>();
    for (let n = 0; n < count; n++)
      waiting.push({ previous: undefined, next: undefined, terms: { type: 'reentrant', group: '', method: '' } });
    return { type: 'reentrant', name: 'order', key: 'lock:order', holders: [], waiting };
  };

  it.each([
    [1_001, 400],
    [1_002, 0],
  ])('is found among the first thousand waiters: %i, and %i ms', (count, waitedFor) => {
    const queue = queueOf(count);
    const work = { queues: [queue], leases: [] } as unknown as ActiveWork;
    const contents = new ClientRecordContents(work, () => 0);
    contents.collect(100); // sees the first one and the last one
    queue.waiting.remove(queue.waiting.first as never);
    expect(contents.collect(500).waits).toEqual([
      { key: 'lock:order', type: 'reentrant', group: '', method: '', waiters: count - 1, waitedFor },
    ]);
  });

  it('is rounded, and counts from the first check that saw the first waiter, not from a later one', () => {
    const queue = queueOf(1);
    const contents = new ClientRecordContents({ queues: [queue], leases: [] } as unknown as ActiveWork, () => 0);
    expect(contents.collect(100.2).longestWait).toBe(0);
    expect(contents.collect(200.9).longestWait).toBe(101);
    expect(contents.collect(300.4).longestWait).toBe(200);
  });
});
