import { setTimeout as sleep } from 'node:timers/promises';
import { LockLostError, LockUnavailableError, LockUpgradeError } from '../../../lib/engine/errors.js';
import type { Lease, MultiLease } from '../../../lib/engine/terms/lease.js';
import { openVirtualWorld, openWorld, STORES } from '../../support/lock-world.js';
import { startProcess } from '../../support/processes/start-process.js';
import { blockEventLoop } from '../../support/runtime/block-event-loop.js';
import { errorOf, latch, Section } from '../../support/section.js';
import { until } from '../../support/until.js';
import { refused } from '../../support/watched/watched-backend.js';

describe.each(STORES)('the children of a share, on %s', (store) => {
  const world = openWorld(store);

  it('exclude each other when they come through two lease.run() of it', async () => {
    const locks = await world.service();
    const lease = await locks.acquire('order');
    const section = new Section();
    const child = (who: string) => locks.withLock('order', () => section.pass(who, 5));
    await Promise.all([
      lease.run(() => Promise.all([child('a'), child('b')])),
      lease.run(() => Promise.all([child('c'), child('d')])),
    ]);
    await lease.release();
    expect(section.entries.sort()).toEqual(['a', 'b', 'c', 'd']);
    expect(section.most).toBe(1);
  });

  it('refuse a reader that writes while another reader of the same writer is inside', async () => {
    const locks = await world.service();
    const read = <T>(body: () => Promise<T>) => locks.withLock('page', { type: 'read' }, body);
    const write = <T>(body: () => Promise<T>) => locks.withLock('page', { type: 'write' }, body);
    const [reading, tried] = [latch(), latch()];
    let wrote = false;
    const upgrade = () =>
      read(async () => {
        await reading.promise;
        const upgraded = write(async () => {
          wrote = true;
        });
        return errorOf(upgraded).finally(() => tried.open());
      });
    const other = () =>
      read(async () => {
        reading.open();
        await tried.promise;
      });
    const [error] = await write(() => Promise.all([upgrade(), other()]));
    expect(error).toBeInstanceOf(LockUpgradeError);
    expect(error.message).toMatch(/another branch of the same writer holds the read lock, too/);
    expect(wrote).toBe(false);
  });

  it.each([['page'], [['page', 'cover']]])('keep readers out while a reader of a writer writes %j', async (names) => {
    const locks = await world.service();
    const read = <T>(body: () => Promise<T>) => locks.withLock('page', { type: 'read' }, body);
    const seen: string[] = [];
    let writes = false;
    await locks.withLock(names, { type: 'write' }, async () => {
      const writing = latch();
      const writer = read(() =>
        locks.withLock(names, { type: 'write' }, async () => {
          writes = true;
          writing.open();
          await sleep(20);
          seen.push('written');
          writes = false;
        }),
      );
      await writing.promise;
      const reader = () => read(async () => void seen.push(writes ? 'read too early' : 'read'));
      await Promise.all([writer, reader(), reader()]);
    });
    expect(seen).toEqual(['written', 'read', 'read']);
  });

  it('wait for a grandchild that nobody awaited', async () => {
    const locks = await world.service();
    const section = new Section();
    let leaked: Promise<void> | undefined;
    await locks.withLock('order', async () => {
      await locks.withLock('order', async () => {
        const entered = latch();
        leaked = locks.withLock('order', () => {
          entered.open();
          return section.pass('grandchild', 20);
        });
        await entered.promise;
      });
      await locks.withLock('order', () => section.pass('next child', 5));
    });
    await leaked;
    expect(section.most).toBe(1);
    expect(section.entries).toEqual(['grandchild', 'next child']);
  });

  it('wait for a great-grandchild too, when all in between have ended', async () => {
    const locks = await world.service();
    const section = new Section();
    const leaked: Promise<void>[] = [];
    await locks.withLock('order', async () => {
      await locks.withLock('order', async () => {
        const entered = latch();
        leaked.push(
          locks.withLock('order', async () => {
            const inner = latch();
            leaked.push(
              locks.withLock('order', () => {
                inner.open();
                return section.pass('great-grandchild', 20);
              }),
            );
            await inner.promise;
            entered.open();
          }),
        );
        await entered.promise;
      });
      await locks.withLock('order', () => section.pass('next child', 5));
    });
    await Promise.all(leaked);
    expect(section.most).toBe(1);
  });

  it('wait for what an ended share of several locks has below it, lock by lock', async () => {
    const locks = await world.service();
    const [stay, seen] = [latch(), [] as string[]];
    let leaked: Promise<void> | undefined;
    await locks.withLock(['a', 'b'], async () => {
      await locks.withLock(['a', 'b'], async () => {
        const entered = latch();
        leaked = locks.withLock('a', async () => {
          entered.open();
          await stay.promise;
          seen.push('the one below has left');
        });
        await entered.promise;
      });
      const next = locks.withLock('a', () => void seen.push('next in a'));
      await locks.withLock('b', () => void seen.push('next in b'));
      await sleep(10);
      stay.open();
      await next;
    });
    await leaked;
    expect(seen).toEqual(['next in b', 'the one below has left', 'next in a']);
  });

  it('continue one at a time after one that still waited below an ended share has moved up', async () => {
    const locks = await world.service();
    const section = new Section();
    const leaked: Promise<void>[] = [];
    await locks.withLock('order', async () => {
      await locks.withLock('order', async () => {
        const inside = await locks.acquire('order');
        leaked.push(locks.withLock('order', () => section.pass('moved up', 3)));
        leaked.push(sleep(10).then(() => inside.release()));
      });
      await Promise.all(['a', 'b', 'c'].map((who) => locks.withLock('order', () => section.pass(who, 3))));
      await Promise.all(['d', 'e'].map((who) => locks.withLock('order', () => section.pass(who, 3))));
    });
    await Promise.all(leaked);
    expect([...section.entries].sort()).toEqual(['a', 'b', 'c', 'd', 'e', 'moved up']);
    expect(section.most).toBe(1);
  });

  it('are found inside lease.run() of the outermost lease: a child continues instead of waiting for itself', async () => {
    const locks = await world.service();
    const entered = await locks.withLock('order', (outer) =>
      locks.withLock('order', () => outer.run(() => locks.withLock('order', { waitTime: 1_000 }, () => 'in'))),
    );
    expect(entered).toBe('in');
  });

  it('let a reader in beside other readers when the writer before it leaves', async () => {
    const locks = await world.service();
    await locks.withLock('page', { type: 'write' }, async () => {
      const first = await locks.acquire('page', { type: 'read' });
      const controller = new AbortController();
      const writer = errorOf(locks.acquire('page', { type: 'write', signal: controller.signal }));
      const second = locks.acquire('page', { type: 'read', waitTime: 20_000 });
      expect(await Promise.race([second, sleep(20, 'waits')])).toBe('waits');
      controller.abort();
      await writer;
      const lease = (await second) as Lease;
      expect(first.held && lease.held).toBe(true);
      await lease.release();
      await first.release();
    });
  });

  it('acquire again in their own scope when they are let in after it has ended, not in that of whoever let them in', async () => {
    const locks = await world.service();
    const lease = await locks.acquire('order');
    let sibling!: Lease;
    let late!: Promise<Lease>;
    await lease.run(async () => {
      sibling = await locks.acquire('order');
      late = locks.acquire('order');
    });
    await lease.run(async () => {
      await sibling.release();
      expect(await Promise.race([late, sleep(20, 'waits')])).toBe('waits');
    });
    await lease.release();
    const anew = await late;
    expect(anew.fencingToken).toBeGreaterThan(lease.fencingToken);
    await anew.release();
  });

  it('acquire again among several when they are let in after their scope has ended', async () => {
    const locks = await world.service();
    const lease = await locks.acquire('order');
    let sibling!: Lease;
    let late!: Promise<MultiLease>;
    await lease.run(async () => {
      sibling = await locks.acquire('order');
      late = locks.acquire(['order', 'stock']);
    });
    await sibling.release();
    expect(await Promise.race([late, sleep(20, 'waits')])).toBe('waits');
    await lease.release();
    const anew = await late;
    expect(anew.tokens.get('order')).toBeGreaterThan(lease.fencingToken);
    await anew.release();
  });

  it('have the lease of what they re-enter: their own leaseTime is not applied, and without one it is not renewed', async () => {
    const locks = await world.service();
    await locks.withLock('order', async (outer) => {
      await locks.withLock('order', { leaseTime: 200 }, async (inner) => {
        expect(inner.remainingTime()).toBeGreaterThan(10_000);
        expect(outer.remainingTime()).toBeGreaterThan(10_000);
      });
    });
    const lost = await errorOf(
      locks.withLock('order', { leaseTime: 300 }, () =>
        locks.withLock('order', async (inner) => {
          expect(inner.remainingTime()).toBeLessThanOrEqual(300);
          await until(() => inner.signal.aborted);
        }),
      ),
    );
    expect(lost).toBeInstanceOf(LockLostError);
  });
});

describe('a share, after the event loop was blocked for longer than the lease', () => {
  const world = openVirtualWorld();
  /** Two processes of one world, and a lock that the other one takes as soon as the first one's lease has lapsed. */
  const two = async () => [await world.process(), await world.process()];
  const LEASE = 30_000;

  it('is not given by re-entry: the inner call waits for whoever holds the lock now', async () => {
    const [{ locks }, other] = await two();
    const { runtime } = world;
    const order: string[] = [];
    const outcome = errorOf(
      locks.withLock('order', async (outer) => {
        runtime.block(LEASE);
        const taken = (await other.locks.tryAcquire('order'))!;
        order.push('taken');
        const inner = locks.withLock('order', (lease) => {
          order.push(`inner, held: ${lease.held}`);
        });
        expect(outer.signal.aborted).toBe(true);
        await runtime.settle();
        order.push('left');
        await taken.release();
        await inner;
      }),
    );
    expect(await runtime.until(outcome)).toBeInstanceOf(LockLostError);
    expect(order).toEqual(['taken', 'left', 'inner, held: true']);
  });

  it.each([
    ['a fixed lease', { leaseTime: 5_000 }],
    ['a fair lock', { type: 'fair' }],
    ['a read lock', { type: 'read' }],
  ] as const)('is not given by re-entry: %s', async (_, options) => {
    const [{ locks }, other] = await two();
    const { runtime } = world;
    const outcome = errorOf(
      locks.withLock('order', options, async () => {
        runtime.block(LEASE);
        const type = 'type' in options && options.type === 'read' ? 'write' : undefined;
        const taken = (await other.locks.tryAcquire('order', { type }))!;
        expect(await locks.tryAcquire('order', { type: 'type' in options ? options.type : undefined })).toBeNull();
        await taken.release();
      }),
    );
    expect(await runtime.until(outcome)).toBeInstanceOf(LockLostError);
  });

  it('is not given after a wait for a sibling', async () => {
    const [{ locks }, other] = await two();
    const { runtime } = world;
    const outcome = errorOf(
      locks.withLock('order', async () => {
        const sibling = await locks.acquire('order');
        const late = locks.acquire('order');
        await runtime.settle();
        runtime.block(LEASE);
        const taken = (await other.locks.tryAcquire('order'))!;
        await errorOf(sibling.release());
        await runtime.settle();
        await taken.release();
        const lease = await late;
        expect(lease.fencingToken).toBeGreaterThan(taken.fencingToken);
        expect(lease.held).toBe(true);
        await lease.release();
      }),
    );
    expect(await runtime.until(outcome)).toBeInstanceOf(LockLostError);
  });

  it('is not given among several', async () => {
    const [{ locks }, other] = await two();
    const { runtime } = world;
    const outcome = errorOf(
      locks.withLock('order', async () => {
        runtime.block(LEASE);
        const taken = (await other.locks.tryAcquire('order'))!;
        expect(await locks.tryAcquire(['order', 'stock'])).toBeNull();
        await taken.release();
        const lease = (await locks.tryAcquire(['order', 'stock']))!;
        expect(lease.held).toBe(true);
        await lease.release();
      }),
    );
    expect(await runtime.until(outcome)).toBeInstanceOf(LockLostError);
  });

  it('is not given among several whose sibling left meanwhile', async () => {
    const [{ locks }, other] = await two();
    const { runtime } = world;
    const outcome = errorOf(
      locks.withLock('order', async () => {
        const sibling = await locks.acquire('order');
        const late = locks.acquire(['order', 'stock']);
        await runtime.settle();
        runtime.block(LEASE);
        const taken = (await other.locks.tryAcquire('order'))!;
        await errorOf(sibling.release());
        await runtime.settle();
        await taken.release();
        const lease = await runtime.until(late);
        expect(lease.tokens.get('order')).toBeGreaterThan(taken.fencingToken);
        expect(lease.held).toBe(true);
        await lease.release();
      }),
    );
    expect(await outcome).toBeInstanceOf(LockLostError);
  });

  it('is not given of the read lock that a writer has kept', async () => {
    const [{ locks }, other] = await two();
    const { runtime } = world;
    await runtime.until(
      locks.withLock('page', { type: 'write' }, async (lease) => {
        await locks.withLock('page', { type: 'read' }, () => {});
        // Only the lease of the write lock is extended.
        await lease.extend(10 * LEASE);
        runtime.block(LEASE);
        await locks.withLock('page', { type: 'read' }, (read) => expect(read.held).toBe(true));
        expect(await other.locks.tryAcquire('page', { type: 'write' })).toBeNull();
      }),
    );
  });

  it('is not given by lease.run()', async () => {
    const [{ locks }, other] = await two();
    const lease = await locks.acquire('order');
    world.runtime.block(LEASE);
    await other.locks.tryAcquire('order');
    let ran = false;
    const error = await errorOf(
      lease.run(() => {
        ran = true;
      }),
    );
    expect(error).toBeInstanceOf(LockLostError);
    expect(ran).toBe(false);
    expect(lease.signal.aborted).toBe(true);
  });
});

describe('a share, while the clocks of the machine disagree', () => {
  const world = openVirtualWorld();
  const JUMP = 5_000;

  it('is given as soon as a renewal has confirmed the lease', async () => {
    const { locks, backend, runtime } = await world.process();
    await locks.withLock('order', async (outer) => {
      runtime.suspend(JUMP);
      expect(outer.held).toBe(false);
      const inner = await locks.acquire('order');
      expect(inner.held).toBe(true);
      expect(inner.owner).toBe(outer.owner);
      expect(backend.commands).toEqual(['acquire', 'renew']);
      await inner.release();
    });
  });

  it('is given once for all who wait for the confirmation, one after the other', async () => {
    const { locks, runtime } = await world.process();
    const section = new Section();
    await locks.withLock('order', async () => {
      runtime.suspend(JUMP);
      await Promise.all(['a', 'b'].map((who) => locks.withLock('order', () => section.pass(who))));
    });
    expect(section.most).toBe(1);
    expect(section.entries).toEqual(['a', 'b']);
  });

  it('is given in a fixed lease when the backend has told what remains of it, which is no more than before', async () => {
    const { locks, backend, runtime } = await world.process();
    await locks.withLock('order', { leaseTime: 20_000 }, async (outer) => {
      await runtime.advance(1_000);
      runtime.setWallClock(-JUMP);
      const inner = await locks.acquire('order');
      expect(inner.held).toBe(true);
      expect(inner.owner).toBe(outer.owner);
      expect(inner.remainingTime()).toBeLessThanOrEqual(19_000);
      expect(inner.remainingTime()).toBeGreaterThan(18_000);
      expect(new Set(backend.commands)).toEqual(new Set(['acquire', 'inspect']));
      await inner.release();
    });
  });

  it('is not given of a lock that is gone: the inner call acquires again', async () => {
    const [{ locks, runtime }, other] = [await world.process(), await world.process()];
    const outcome = errorOf(
      locks.withLock('order', async (outer) => {
        await other.locks.forceRelease('order');
        runtime.suspend(JUMP);
        const inner = await runtime.until(locks.acquire('order'));
        expect(inner.owner).not.toBe(outer.owner);
        expect(outer.signal.aborted).toBe(true);
        await inner.release();
      }),
    );
    expect(await outcome).toBeInstanceOf(LockLostError);
  });

  it('waits out an outage, or for as long as its waitTime', async () => {
    const { locks, backend, runtime } = await world.process();
    await runtime.until(
      locks.withLock('order', async (outer) => {
        runtime.suspend(JUMP);
        backend.disturb(refused, 'renew');
        expect(await errorOf(locks.acquire('order', { waitTime: 0 }))).toBeInstanceOf(LockUnavailableError);
        expect(await errorOf(locks.acquire('order', { waitTime: 300 }))).toBeInstanceOf(LockUnavailableError);
        const patient = locks.acquire('order');
        await runtime.advance(2_000);
        backend.heal();
        const inner = await patient;
        expect(inner.owner).toBe(outer.owner);
        await inner.release();
      }),
    );
  });

  it('is given among several as soon as a renewal has confirmed the lease', async () => {
    const { locks, runtime } = await world.process();
    await locks.withLock('order', async (outer) => {
      runtime.suspend(JUMP);
      const inner = (await locks.tryAcquire(['order', 'stock']))!;
      expect(inner.held).toBe(true);
      expect(inner.tokens.get('order')).toBe(outer.fencingToken);
      await inner.release();
    });
  });

  it('is given by lease.run() as soon as a renewal has confirmed the lease', async () => {
    const { locks, runtime } = await world.process();
    const lease = await locks.acquire('order');
    runtime.suspend(JUMP);
    expect(await lease.run(() => lease.held)).toBe(true);
    await lease.release();
  });
});

describe('a share, while another process has the lock', () => {
  const world = openWorld('Redis');

  it('is not given after the event loop was blocked for longer than the lease', async () => {
    const locks = await world.service();
    const admin = world.redis.client();
    let inner: boolean | undefined;
    const outcome = errorOf(
      locks.withLock('order', { leaseTime: 3_000 }, async () => {
        const { child } = await startProcess('lock-taker.ts', world.redis.url, world.keyPrefix, 'order', '1000');
        const left = new Promise((resolve) => child.once('exit', resolve));
        // The other process gets it when the lease has lapsed, and this process is not notified.
        blockEventLoop(3_200);
        await locks.withLock('order', async (lease) => {
          expect(await admin.get('inside:order')).toBe('0');
          inner = lease.held;
        });
        await left;
      }),
    );
    expect(await outcome).toBeInstanceOf(LockLostError);
    expect(inner).toBe(true);
  });
});
