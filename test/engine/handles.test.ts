import { setTimeout as sleep } from 'node:timers/promises';
import { LockLostError, LockNotOwnedError } from '../../lib/engine/errors.js';
import { type LockScope, lockScopes } from '../../lib/engine/lock-scope.js';
import type { ReentrantLock } from '../../lib/locks/reentrant-lock.js';
import type { LockService } from '../../lib/nest/lock.service.js';
import { ms, openWorld, STORES } from '../support/lock-world.js';
import { errorOf, latch, Section } from '../support/section.js';
import { until } from '../support/until.js';

/** Handles mark the flow that calls them: each test is a flow of its own, so that none inherits from another. */
const flow = <T>(body: () => Promise<T>): Promise<T> => lockScopes.run(undefined, body);

describe.each(STORES)('handles in Redisson’s style, on %s', (store) => {
  const world = openWorld(store);

  const locked = async (lock: ReentrantLock, section: Section, who: string) => {
    await lock.lock();
    try {
      await section.pass(who, 5);
    } finally {
      await lock.unlock();
    }
  };

  it('lock, and unlock', () =>
    flow(async () => {
      const [locks, other] = await world.services(2);
      const lock = locks.getLock('order');
      expect(lock.name).toBe('order');
      await lock.lock();
      expect(await other.getLock('order').isLocked()).toBe(true);
      expect(await other.getLock('order').tryLock()).toBe(false);
      await lock.unlock();
      expect(await lock.isLocked()).toBe(false);
    }));

  it('re-enter in the code after lock(), in the code that it calls, and through another handle of the name', () =>
    flow(async () => {
      const { locks, backend } = await world.process();
      const lock = locks.getLock('order');
      const called = async () => {
        await sleep(1);
        await locks.getLock('order').lock();
        expect(locks.getLock('order').getHoldCount()).toBe(3);
        await locks.getLock('order').unlock();
      };
      await lock.lock();
      await lock.lock();
      await called();
      expect(lock.getHoldCount()).toBe(2);
      await lock.unlock();
      expect(lock.isHeldByCurrentOwner()).toBe(true);
      await lock.unlock();
      expect(lock.isHeldByCurrentOwner()).toBe(false);
      expect(backend.commands).toEqual(['acquire', 'release']);
    }));

  it('can be unlocked by the code that was called', () =>
    flow(async () => {
      const locks = await world.service();
      const lock = locks.getLock('order');
      const cleanUp = async () => {
        await sleep(1);
        await lock.unlock();
      };
      await lock.lock();
      await cleanUp();
      expect(await lock.isLocked()).toBe(false);
      expect(lock.isHeldByCurrentOwner()).toBe(false);
      await expect(lock.unlock()).rejects.toThrow(LockNotOwnedError);
    }));

  it('can be locked by the code that was called', () =>
    flow(async () => {
      const locks = await world.service();
      const lock = locks.getLock('order');
      const enter = () => lock.lock();
      await enter();
      expect(lock.isHeldByCurrentOwner()).toBe(true);
      await lock.unlock();
    }));

  it('keep another request out, on the same handle', async () => {
    const locks = await world.service();
    const lock = locks.getLock('order');
    const section = new Section();
    const requests = ['a', 'b', 'c', 'd'];
    // Each request begins in an event of its own, as they do in a server.
    await Promise.all(
      requests.map(
        (who) =>
          new Promise<void>((resolve, reject) => {
            setImmediate(() => flow(() => locked(lock, section, who)).then(resolve, reject));
          }),
      ),
    );
    expect(section.most).toBe(1);
    expect(section.entries).toEqual(requests);
  });

  it('answer unlock() of another request with LockNotOwnedError, and stay locked', async () => {
    const locks = await world.service();
    const lock = locks.getLock('order');
    const [entered, asked] = [latch(), latch()];
    const inside = flow(async () => {
      await lock.lock();
      entered.open();
      await asked.promise;
      expect(lock.isHeldByCurrentOwner()).toBe(true);
      await lock.unlock();
    });
    await flow(async () => {
      await entered.promise;
      expect(lock.isHeldByCurrentOwner()).toBe(false);
      expect(lock.getHoldCount()).toBe(0);
      expect(await lock.isLocked()).toBe(true);
      await expect(lock.unlock()).rejects.toThrow(LockNotOwnedError);
      expect(await lock.isLocked()).toBe(true);
    });
    asked.open();
    await inside;
  });

  it('let branches of one Promise.all in one after the other', () =>
    flow(async () => {
      const locks = await world.service();
      const lock = locks.getLock('order');
      const section = new Section();
      await Promise.all(['a', 'b', 'c'].map((who) => locked(lock, section, who)));
      expect(section.most).toBe(1);
      expect(section.entries).toEqual(['a', 'b', 'c']);
    }));

  it('let branches that take other locks first in one after the other', () =>
    flow(async () => {
      const locks = await world.service();
      const [a, b] = [locks.getLock('a'), locks.getLock('b')];
      const section = new Section();
      const first = () => locked(a, section, 'first');
      const second = async () => {
        await b.lock();
        await sleep(2); // until the first one is inside
        await locked(a, section, 'second');
        await b.unlock();
      };
      await Promise.all([first(), second()]);
      expect(section.most).toBe(1);
      expect(section.entries).toEqual(['first', 'second']);
    }));

  it('can be locked side by side, and unlocked', () =>
    flow(async () => {
      const locks = await world.service();
      const all = ['a', 'b', 'c'].map((name) => locks.getLock(name));
      await Promise.all(all.map((lock) => lock.lock()));
      for (const lock of all) expect(await lock.isLocked()).toBe(true);
      for (const lock of all) await lock.unlock();
      for (const lock of all) expect(await lock.isLocked()).toBe(false);
    }));

  it('let branches inside a lock of the same flow in one after the other', () =>
    flow(async () => {
      const locks = await world.service();
      const lock = locks.getLock('order');
      const section = new Section();
      await lock.lock();
      await Promise.all(['a', 'b', 'c'].map((who) => locked(lock, section, who)));
      expect(lock.getHoldCount()).toBe(1);
      await lock.unlock();
      expect(section.most).toBe(1);
    }));

  it('re-enter what withLock() holds, and the reverse', () =>
    flow(async () => {
      const locks = await world.service();
      const lock = locks.getLock('order');
      await locks.withLock('order', async () => {
        expect(lock.isHeldByCurrentOwner()).toBe(true);
        await lock.lock();
        expect(lock.getHoldCount()).toBe(2);
        await locks.withLock('order', async () => expect(lock.getHoldCount()).toBe(3));
        await lock.unlock();
      });
      expect(await lock.isLocked()).toBe(false);
    }));

  it('unlock nothing that withLock() holds', () =>
    flow(async () => {
      const locks = await world.service();
      const lock = locks.getLock('order');
      await locks.withLock('order', async (lease) => {
        await expect(lock.unlock()).rejects.toThrow(LockNotOwnedError);
        expect(lease.held).toBe(true);
      });
    }));

  it('keep two services apart', () =>
    flow(async () => {
      const [locks, other] = await world.services(2);
      await locks.getLock('order').lock();
      expect(await other.getLock('order').tryLock()).toBe(false);
      await expect(other.getLock('order').unlock()).rejects.toThrow(LockNotOwnedError);
      await locks.getLock('order').unlock();
    }));

  it('can be nested over several names, and unlocked in any order', () =>
    flow(async () => {
      const locks = await world.service();
      const [a, b, c] = ['a', 'b', 'c'].map((name) => locks.getLock(name));
      await a.lock();
      await b.lock();
      await a.unlock();
      expect(a.isHeldByCurrentOwner()).toBe(false);
      expect(b.isHeldByCurrentOwner()).toBe(true);
      await c.lock();
      await b.unlock();
      await c.unlock();
      for (const lock of [a, b, c]) expect(await lock.isLocked()).toBe(false);
    }));

  it('tell at unlock() that the lock was lost', () =>
    flow(async () => {
      const [locks, other] = await world.services(2, { watchdogTimeout: ms(300) });
      const lock = locks.getLock('order');
      await lock.lock();
      await other.forceRelease('order');
      await until(() => !lock.isHeldByCurrentOwner());
      const error = await errorOf(lock.unlock());
      expect(error).toBeInstanceOf(LockLostError);
      await expect(lock.unlock()).rejects.toThrow(LockNotOwnedError);
      await lock.lock();
      await lock.unlock();
    }));

  it('leave no mark when lock() fails', () =>
    flow(async () => {
      const [locks, other] = await world.services(2);
      const lease = await other.acquire('order');
      const lock = locks.getLock('order');
      expect(await lock.tryLock(500)).toBe(false);
      await expect(lock.lock(5)).rejects.toThrow('leaseTime');
      expect(lock.getHoldCount()).toBe(0);
      expect(chainLength()).toBeLessThanOrEqual(1);
      await expect(lock.unlock()).rejects.toThrow(LockNotOwnedError);
      await lease.release();
      expect(await lock.tryLock()).toBe(true);
      await lock.unlock();
    }));

  it('do not make the chain of scopes grow: in a loop, and from lock to lock', () =>
    flow(async () => {
      const locks = await world.service();
      const lock = locks.getLock('order');
      const rounds = store === 'memory' ? 10_000 : 1_000;
      for (let i = 0; i < rounds; i++) {
        await lock.lock();
        await lock.unlock();
      }
      expect(chainLength()).toBeLessThanOrEqual(1);
      let held = locks.getLock('step:0');
      await held.lock();
      for (let i = 1; i < 300; i++) {
        const next = locks.getLock(`step:${i}`);
        await next.lock();
        await held.unlock();
        held = next;
      }
      expect(chainLength()).toBeLessThanOrEqual(3);
      await held.unlock();
    }));

  it('free a lock by force, whoever holds it', () =>
    flow(async () => {
      const [locks, other] = await world.services(2);
      const lease = await locks.acquire('order');
      expect(await other.getLock('order').forceUnlock()).toBe(true);
      expect(await other.getLock('order').forceUnlock()).toBe(false);
      expect(await other.getLock('order').isLocked()).toBe(false);
      await errorOf(lease.release());
    }));

  const remaining = (locks: LockService) => locks.getLock('order').remainTimeToLive();

  it('know how long the lock lives', () =>
    flow(async () => {
      const [locks, other] = await world.services(2);
      expect(await remaining(locks)).toBe(-2);
      await locks.getLock('order').lock('10s');
      for (const service of [locks, other]) {
        expect(await remaining(service)).toBeGreaterThan(5_000);
        expect(await remaining(service)).toBeLessThanOrEqual(10_000);
      }
      await locks.getLock('order').unlock();
      expect(await remaining(other)).toBe(-2);
    }));
});

function chainLength(): number {
  let length = 0;
  for (let scope: LockScope | undefined = lockScopes.getStore(); scope !== undefined; scope = scope.parent) length++;
  return length;
}
