import { queueOf as flightQueueOf } from '../../lib/engine/flights/single-flight.js';
import type { HeldLock, LockWaiter } from '../../lib/engine/hold/held-lock.js';
import { LockTable } from '../../lib/engine/lock-table.js';
import { FairQueue } from '../../lib/engine/queue/fair-queue.js';
import { DEFAULT_TERMS } from '../../lib/engine/terms/lock-options.js';
import { leftovers, NOTHING, openVirtualWorld } from '../support/lock-world.js';

describe('the queues of a service', () => {
  const world = openVirtualWorld();

  const open = async () => {
    const process = await world.process();
    const { services } = process.locks.engine;
    const changes: number[] = [];
    services.work.watch(() => changes.push(services.work.queues.size));
    let left = 0;
    services.outages.left = () => void left++;
    return { ...process, services, changes, table: new LockTable(services), left: () => left };
  };

  it('are created when they are needed, one for each lock', async () => {
    const { table } = await open();
    expect(table.find('reentrant', 'order')).toBeUndefined();
    const queue = table.queueOf('reentrant', 'order', 'lock:order');
    expect(queue).toMatchObject({ name: 'order', key: 'lock:order', type: 'reentrant' });
    expect(table.find('reentrant', 'order')).toBe(queue);
    expect(table.queueOf('reentrant', 'order', 'lock:order')).toBe(queue);
    const fair = table.queueOf('fair', 'order', 'lock:order');
    expect(fair).toBeInstanceOf(FairQueue);
    expect(queue).not.toBeInstanceOf(FairQueue);
    expect(table.find('fair', 'order')).toBe(fair);
    const flight = flightQueueOf(table, 'order', 'lock:order');
    expect(flightQueueOf(table, 'order', 'lock:order')).toBe(flight);
    expect(table.find('flight', 'order')).toBe(flight);
    for (const each of [queue, fair, flight]) each.endIfIdle();
  });

  it('are forgotten when they end, and the unfinished work and the limit of outages hear of it', async () => {
    const { table, services, changes, left } = await open();
    table.queueOf('reentrant', 'order', 'lock:order').endIfIdle();
    expect([services.work.queues.size, changes, left()]).toEqual([0, [0], 1]);
    table.queueOf('fair', 'order', 'lock:order').endIfIdle();
    expect([services.work.queues.size, changes, left()]).toEqual([0, [0, 0], 2]);
    flightQueueOf(table, 'order', 'lock:order').endIfIdle();
    expect([services.work.queues.size, changes, left()]).toEqual([0, [0, 0, 0], 3]);
  });
});

describe('the leases of a service', () => {
  const world = openVirtualWorld();

  it('are unfinished work until they end, and whoever watches that work hears of it', async () => {
    const process = await world.process();
    const { locks, runtime } = process;
    const { work } = locks.engine.services;
    const lease = await locks.acquire('order');
    expect([...work.leases]).toEqual([lease]);
    const seen: number[] = [];
    const unwatch = work.watch(() => seen.push(work.leases.length));
    await lease.release();
    unwatch();
    expect(seen.at(-1)).toBe(0);
    await runtime.settle();
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('serve as examples of their class, unless they refer to what belongs to a caller', async () => {
    const { locks } = await world.process();
    const { services } = locks.engine;
    const { examples } = services;
    const first = await locks.acquire('order');
    expect(examples.lease).toBe(first);
    expect((examples.waiter as LockWaiter).name).toBe('order');
    const { signal } = new AbortController();
    const withSignal = await locks.acquire('stock', { signal });
    expect(examples.lease).toBe(first);
    await withSignal.release();
    expect(examples.lease).toBe(first);
    await first.release();
    expect(examples.lease).toBe(first);
    // Its signal may have listeners of its caller.
    const heard = await locks.acquire('order');
    void heard.signal;
    expect(examples.lease).toBe(heard);
    await heard.release();
    expect([examples.waiter, examples.lease]).toEqual([undefined, undefined]);
  });

  it('have the locks and the terms that they were created with, and no gates unless they share a lock', async () => {
    const { locks } = await world.process();
    const { services } = locks.engine;
    const held = await locks.acquire('order').then(() => services.heldLocks()[0]);
    const table = new LockTable(services);
    const terms = { ...DEFAULT_TERMS, group: 'jobs', onLost: 'warn', release: 'confirmed' } as never;
    const lease = table.createLease([held as HeldLock], terms);
    expect(lease).toMatchObject({ name: 'order', owner: held.owner, entered: [] });
    expect(lease.terms).toBe(terms);
    expect(services.work.leases.last).toBe(lease);
    await lease.release();
  });
});
