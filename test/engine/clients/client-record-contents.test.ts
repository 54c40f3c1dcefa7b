import { ClientRecordContents } from '../../../lib/engine/clients/client-record-contents.js';
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
});
