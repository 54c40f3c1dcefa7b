import { setTimeout as sleep } from 'node:timers/promises';
import {
  LockAbortedError,
  LockBusyError,
  LockConfigurationError,
  LockLostError,
  LockUpgradeError,
} from '../../../lib/engine/errors.js';
import { currentLease, type LockScope, lockScopes } from '../../../lib/engine/scope/lock-scope.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import { leftovers, NOTHING, openWorld, STORES } from '../../support/lock-world.js';
import { errorOf, latch, Section } from '../../support/section.js';
import { until } from '../../support/until.js';

describe.each(STORES)('lock scopes, on %s', (store) => {
  const world = openWorld(store);

  describe('re-entry', () => {
    it('enters a lock that the code around it holds, with its owner and token and no round trip', async () => {
      const { locks, backend } = await world.process();
      await locks.withLock('order', async (outer) => {
        const before = backend.count();
        await locks.withLock('order', async (inner) => {
          expect(inner).not.toBe(outer);
          expect(inner.owner).toBe(outer.owner);
          expect(inner.fencingToken).toBe(outer.fencingToken);
          expect(inner.held).toBe(true);
        });
        expect(backend.count()).toBe(before);
      });
    });

    it('keeps the lock until the last share is given back', async () => {
      const [locks, other] = await world.services(2);
      await locks.withLock('order', async () => {
        await locks.withLock('order', async () => {});
        expect(await other.tryAcquire('order')).toBeNull();
      });
      expect(await other.isLocked('order')).toBe(false);
    });

    it('keeps the lock for a child that outlives the scope that it came from', async () => {
      const [locks, other] = await world.services(2);
      const child = await locks.withLock('order', () => locks.acquire('order'));
      expect(child.held).toBe(true);
      expect(await other.tryAcquire('order')).toBeNull();
      await child.release();
      expect(await other.tryAcquire('order')).not.toBeNull();
    });

    it('lets children of one scope in one after the other, in the order of their arrival', async () => {
      const locks = await world.service();
      const section = new Section();
      await locks.withLock('order', () =>
        Promise.all(['a', 'b', 'c'].map((who) => locks.withLock('order', () => section.pass(who, 3)))),
      );
      expect(section.most).toBe(1);
      expect(section.entries).toEqual(['a', 'b', 'c']);
    });

    it('lets grandchildren in while their parent is inside, and its siblings after it', async () => {
      const locks = await world.service();
      const section = new Section();
      await locks.withLock('order', () =>
        Promise.all([
          locks.withLock('order', () =>
            Promise.all(['a', 'b'].map((who) => locks.withLock('order', () => section.pass(who, 2)))),
          ),
          locks.withLock('order', () => section.pass('c', 2)),
        ]),
      );
      expect(section.most).toBe(1);
      expect(section.entries).toEqual(['a', 'b', 'c']);
    });

    it('keeps flows apart that share nothing but the lock service', async () => {
      const locks = await world.service();
      const section = new Section();
      const flow = (who: string) => locks.withLock('order', () => locks.withLock('order', () => section.pass(who, 2)));
      await Promise.all(['a', 'b', 'c', 'd'].map(flow));
      expect(section.most).toBe(1);
      expect(section.entries).toEqual(['a', 'b', 'c', 'd']);
    });

    it('finds an outer lock through the scope of another lock', async () => {
      const locks = await world.service();
      await locks.withLock('order', (order) =>
        locks.withLock('stock', () => locks.withLock('order', async (again) => expect(again.owner).toBe(order.owner))),
      );
    });

    it('is not possible from one service into the lock of another', async () => {
      const [locks, other] = await world.services(2);
      await locks.withLock('order', async () => {
        expect(await other.tryAcquire('order')).toBeNull();
        await expect(other.acquire('order', { waitTime: 500 })).rejects.toThrow(LockBusyError);
      });
    });

    it('is not possible into a lease that was acquired outside of any scope', async () => {
      const locks = await world.service();
      const lease = await locks.acquire('order');
      expect(await locks.tryAcquire('order')).toBeNull();
      await lease.release();
    });

    it('is not possible into a lease that was released inside its scope: the name is acquired again', async () => {
      const locks = await world.service();
      await locks.withLock('order', async (lease) => {
        await lease.release();
        const anew = await locks.acquire('order');
        expect(anew.owner).not.toBe(lease.owner);
        expect(anew.fencingToken).toBeGreaterThan(lease.fencingToken);
        await anew.release();
      });
    });

    it('treats a lease that acquire() gave inside a scope as a child', async () => {
      const locks = await world.service();
      await locks.withLock('order', async () => {
        const child = await locks.acquire('order');
        const late = locks.withLock('order', async () => 'in');
        expect(await Promise.race([late, sleep(20, 'waits')])).toBe('waits');
        await child.release();
        expect(await late).toBe('in');
      });
    });

    it('tells a child with a waitTime of 0 that a sibling is inside', async () => {
      const locks = await world.service();
      await locks.withLock('order', async () => {
        const sibling = await locks.acquire('order');
        expect(await locks.tryAcquire('order')).toBeNull();
        const error = await errorOf(locks.acquire('order', { waitTime: 10 }));
        expect(error).toBeInstanceOf(LockBusyError);
        expect(error.message).toContain('another branch');
        await sibling.release();
        expect(await locks.tryAcquire('order')).not.toBeNull();
      });
    });

    it('ends the wait of a child whose signal aborts, and lets the next one in', async () => {
      const locks = await world.service();
      await locks.withLock('order', async () => {
        const sibling = await locks.acquire('order');
        const controller = new AbortController();
        const aborted = errorOf(locks.acquire('order', { signal: controller.signal }));
        const next = locks.acquire('order');
        controller.abort(new Error('enough'));
        expect(await aborted).toBeInstanceOf(LockAbortedError);
        expect((await aborted).cause).toEqual(new Error('enough'));
        await sibling.release();
        await (await next).release();
      });
    });

    it('refuses a child whose signal was aborted before', async () => {
      const locks = await world.service();
      await locks.withLock('order', async () => {
        await expect(locks.acquire('order', { signal: AbortSignal.abort() })).rejects.toThrow(LockAbortedError);
      });
    });
  });

  describe('a scope that has ended', () => {
    it('takes no new share: code that leaked out of it acquires again', async () => {
      const locks = await world.service();
      const ended = latch();
      let leaked: Promise<Lease> | undefined;
      const first = await locks.withLock('order', async (lease) => {
        leaked = ended.promise.then(() => locks.acquire('order'));
        return lease;
      });
      const holder = await locks.acquire('order');
      ended.open();
      expect(await Promise.race([leaked, sleep(20, 'waits')])).toBe('waits');
      await holder.release();
      const lease = (await leaked) as Lease;
      expect(lease.owner).not.toBe(first.owner);
      await lease.release();
    });

    it('takes no new share although its lease lives on', async () => {
      const locks = await world.service();
      const lease = await locks.acquire('order');
      const ended = latch();
      let leaked: Promise<Lease> | undefined;
      await lease.run(async () => {
        leaked = ended.promise.then(() => locks.acquire('order'));
      });
      ended.open();
      expect(await Promise.race([leaked, sleep(20, 'waits')])).toBe('waits');
      await lease.release();
      await (await leaked)?.release();
    });

    it('lets a child that still waited in it acquire again, within its waitTime', async () => {
      const [locks, other] = await world.services(2);
      const leaked: Promise<Lease>[] = [];
      let sibling!: Lease;
      await locks.withLock('order', async () => {
        sibling = await locks.acquire('order');
        leaked.push(locks.acquire('order', { waitTime: 60_000 }), locks.acquire('order', { waitTime: 150 }));
      });
      const began = performance.now();
      const late = errorOf(leaked[1]);
      await sibling.release();
      const anew = await leaked[0];
      expect(anew.owner).not.toBe(sibling.owner);
      expect(await other.tryAcquire('order')).toBeNull();
      expect(await late).toBeInstanceOf(LockBusyError);
      expect(performance.now() - began).toBeLessThan(5_000);
      await anew.release();
      await until(async () => !(await other.isLocked('order')));
    });

    it('is not kept alive by a task that schedules its own next run', async () => {
      const locks = await world.service();
      let runs = 0;
      const depth = await new Promise<number>((resolve) => {
        const run = () =>
          locks.withLock('task', async () => {
            if (++runs === 200) resolve(chainLength());
            else setTimeout(run, 0);
          });
        void run();
      });
      expect(depth).toBeLessThan(5);
    });
  });

  describe('currentLease()', () => {
    it('is the lease inside the body, also after an await and in called code, and nothing outside of it', async () => {
      const locks = await world.service();
      expect(currentLease()).toBeUndefined();
      await locks.withLock('order', async (lease) => {
        expect(currentLease()).toBe(lease);
        await sleep(1);
        const called = async () => currentLease();
        expect(await called()).toBe(lease);
      });
      expect(currentLease()).toBeUndefined();
    });

    it('is still the lease when that was lost, so that its token fences what the body writes late', async () => {
      const locks = await world.service();
      const fenced = locks.withLock('order', async (lease) => {
        await locks.forceRelease('order');
        expect(currentLease()).toBe(lease);
        expect(currentLease('order')?.fencingToken).toBe(lease.fencingToken);
        expect(currentLease()?.held).toBe(false);
      });
      expect(await errorOf(fenced)).toBeInstanceOf(LockLostError);
    });

    it('is the innermost one, or the one with the given name', async () => {
      const locks = await world.service();
      await locks.withLock('order', (order) =>
        locks.withLock('stock', async (stock) => {
          expect(currentLease()).toBe(stock);
          expect(currentLease('order')).toBe(order);
          expect(currentLease('stock')).toBe(stock);
          expect(currentLease('basket')).toBeUndefined();
        }),
      );
    });

    it('is found by each of its names when it holds several', async () => {
      const locks = await world.service();
      await locks.withLock(['a', 'b'], async (lease) => {
        expect(currentLease('a')).toBe(lease);
        expect(currentLease('b')).toBe(lease);
      });
    });

    it('is gone for work that leaked out of the body', async () => {
      const locks = await world.service();
      const ended = latch();
      let leaked: Promise<unknown> | undefined;
      await locks.withLock('order', async () => {
        leaked = ended.promise.then(() => currentLease());
      });
      ended.open();
      expect(await leaked).toBeUndefined();
    });

    it('is the outer one again when the inner scope has ended', async () => {
      const locks = await world.service();
      await locks.withLock('order', async (order) => {
        await locks.withLock('stock', async () => {});
        expect(currentLease()).toBe(order);
      });
    });

    it('is not the lease of acquire(), but is that of lease.run() inside of it', async () => {
      const locks = await world.service();
      const lease = await locks.acquire('order');
      expect(currentLease()).toBeUndefined();
      await lease.run(async (given) => {
        expect(given).toBe(lease);
        expect(currentLease()).toBe(lease);
      });
      expect(currentLease()).toBeUndefined();
      await lease.release();
    });

    it('does not reach the listeners and timers that a body has started', async () => {
      const { locks, runtime } = await world.process();
      const seen: unknown[] = [];
      locks.on('released', () => seen.push(currentLease()));
      await locks.withLock('order', async () => {
        await locks.withLock('stock', async () => {});
        runtime.timer(0, () => seen.push(currentLease()));
      });
      await until(() => seen.length === 3);
      expect(seen).toEqual([undefined, undefined, undefined]);
    });
  });

  describe('lease.run()', () => {
    it('makes what it runs re-enter, and does not release', async () => {
      const [locks, other] = await world.services(2);
      const lease = await locks.acquire('order');
      const result = await lease.run(() => locks.withLock('order', async (inner) => inner.owner));
      expect(result).toBe(lease.owner);
      expect(lease.held).toBe(true);
      expect(await other.tryAcquire('order')).toBeNull();
      await lease.release();
    });

    it('passes on what the body throws, also at once', async () => {
      const locks = await world.service();
      const lease = await locks.acquire('order');
      await expect(lease.run(() => Promise.reject(new Error('sold out')))).rejects.toThrow('sold out');
      const run = lease.run(() => {
        throw new Error('at once');
      });
      await expect(run).rejects.toThrow('at once');
      await lease.release();
    });

    it('refuses to run under a lease that was released', async () => {
      const locks = await world.service();
      const lease = await locks.acquire('order');
      await lease.release();
      await expect(lease.run(() => 1)).rejects.toThrow('released already');
    });
  });

  describe('types under one name', () => {
    const nest = async (outer: LockOptions, inner: LockOptions) => {
      const locks = await world.service();
      return locks.withLock('order', outer, () => locks.withLock('order', inner, async () => 'in'));
    };

    it.each(['reentrant', 'fair', 'fenced'] as const)(
      'lets a %s lock be re-entered as any of these three',
      async (type) => {
        for (const inner of ['reentrant', 'fair', 'fenced'] as const)
          expect(await nest({ type }, { type: inner })).toBe('in');
      },
    );

    it('refuses a reader that asks for the write lock at once, instead of letting it wait for itself', async () => {
      const error = await errorOf(nest({ type: 'read' }, { type: 'write' }));
      expect(error).toBeInstanceOf(LockUpgradeError);
      expect((error as LockUpgradeError).lockName).toBe('order');
    });

    it.each([
      ['reentrant', 'read'],
      ['fair', 'write'],
      ['read', 'reentrant'],
      ['write', 'fenced'],
    ] as const)('refuses code that holds a %s lock and asks for a %s one', async (outer, inner) => {
      const error = await errorOf(nest({ type: outer }, { type: inner }));
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect(error.message).toContain(`held by this code as type '${outer}' and requested as '${inner}'`);
    });

    it('leaves the lock as it was after such a refusal', async () => {
      const process = await world.process();
      await process.locks.withLock('order', async () => {
        await errorOf(process.locks.acquire('order', { type: 'read' }));
        await process.locks.withLock('order', async () => {});
      });
      expect(leftovers(process)).toEqual(NOTHING);
    });
  });
});

function chainLength(): number {
  let length = 0;
  for (let scope: LockScope | undefined = lockScopes.getStore(); scope !== undefined; scope = scope.parent) length++;
  return length;
}
