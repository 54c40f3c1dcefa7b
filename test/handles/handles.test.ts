import { setTimeout as sleep } from 'node:timers/promises';
import { LockAbortedError, LockConfigurationError, LockLostError, LockNotOwnedError } from '../../lib/engine/errors.js';
import { currentLease } from '../../lib/engine/scope/lock-scope.js';
import type { Lease } from '../../lib/engine/terms/lease.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { ms, openWorld, STORES } from '../support/lock-world.js';
import { errorOf, Section } from '../support/section.js';
import { until } from '../support/until.js';
import { locked } from './locked.js';

describe.each(STORES)('handles in Redisson’s style, on %s', (store) => {
  const world = openWorld(store);

  it('give a lease, which is what can be released', async () => {
    const [locks, other] = await world.services(2);
    const lock = locks.getLock('order');
    expect(lock.name).toBe('order');
    const lease = await lock.lock();
    expect(lease.held).toBe(true);
    expect(await other.getLock('order').isLocked()).toBe(true);
    expect(await other.getLock('order').tryLock()).toBeNull();
    await lease.release();
    expect(await lock.isLocked()).toBe(false);
    const again = await other.getLock('order').tryLock();
    expect(again?.held).toBe(true);
    await again?.release();
    await again?.release();
    expect(await lock.isLocked()).toBe(false);
  });

  it('exclude each other outside of a scope, even on one handle', async () => {
    const locks = await world.service();
    const lock = locks.getLock('order');
    const lease = await lock.lock();
    expect(await lock.tryLock()).toBeNull();
    expect(await lock.tryLock(20)).toBeNull();
    const next = lock.lock();
    expect(await Promise.race([next, sleep(20, 'waits')])).toBe('waits');
    await lease.release();
    await (await next).release();
  });

  it('do not change the scope of the code that calls them', async () => {
    const locks = await world.service();
    const lease = await locks.getLock('order').lock();
    expect(currentLease()).toBeUndefined();
    expect(locks.getLock('order').getHoldCount()).toBe(0);
    expect(locks.getLock('order').isHeldByCurrentScope()).toBe(false);
    await lease.release();
  });

  it('re-enter a scope that holds the lock: of lease.run(), of withLock() and of each other', async () => {
    const { locks, backend } = await world.process();
    const lock = locks.getLock('order');
    const lease = await lock.lock();
    await lease.run(async () => {
      expect(currentLease()).toBe(lease);
      const inner = await locks.getLock('order').lock();
      expect(inner.owner).toBe(lease.owner);
      await inner.run(() => expect(lock.getHoldCount()).toBe(2));
      await inner.release();
    });
    await lease.release();
    await locks.withLock('order', async (outer) => {
      await locked(lock, (inner) => expect(inner.owner).toBe(outer.owner));
      expect(outer.held).toBe(true);
    });
    expect(backend.commands).toEqual(['acquire', 'release', 'acquire', 'release']);
  });

  it('can be locked by one function and released by another', async () => {
    const locks = await world.service();
    const enter = async () => {
      await sleep(1);
      return locks.getLock('order').lock();
    };
    const leave = async (lease: Lease) => {
      await sleep(1);
      await lease.release();
    };
    await leave(await enter());
    expect(await locks.isLocked('order')).toBe(false);
  });

  it('let branches of one Promise.all in one after the other, inside of a scope too', async () => {
    const locks = await world.service();
    const lock = locks.getLock('order');
    const section = new Section();
    const branches = (names: readonly string[]) =>
      Promise.all(
        names.map(async (who, n) => {
          await sleep(n);
          await locked(lock, () => section.pass(who, 5));
        }),
      );
    await branches(['a', 'b', 'c']);
    await locked(lock, (lease) => lease.run(() => branches(['d', 'e', 'f'])));
    expect(section.most).toBe(1);
    expect(section.entries).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
  });

  it('keep two services apart', async () => {
    const [locks, other] = await world.services(2);
    await locked(locks.getLock('order'), (lease) =>
      lease.run(async () => {
        expect(await other.getLock('order').tryLock()).toBeNull();
        expect(other.getLock('order').isHeldByCurrentScope()).toBe(false);
      }),
    );
  });

  it('end their wait when a signal aborts', async () => {
    const [locks, other] = await world.services(2);
    await locked(other.getLock('order'), async () => {
      const controller = new AbortController();
      const { signal } = controller;
      const waiting = [
        errorOf(locks.getLock('order').lock(undefined, { signal })),
        errorOf(locks.getFairLock('order').tryLock('20s', '1s', { signal })),
        errorOf(locks.getFencedLock('order').tryLock('20s', '1s', { signal })),
      ];
      await until(() => locks.engine.waiting('order') >= 2);
      controller.abort();
      for (const error of await Promise.all(waiting)) expect(error).toBeInstanceOf(LockAbortedError);
      const wrong = errorOf(locks.getLock('order').lock(undefined, { signal: 'now' as never }));
      expect(await wrong).toBeInstanceOf(LockConfigurationError);
    });
  });

  it('report at the release that the lock was lost, and their lease is of no more use', async () => {
    const [locks, other] = await world.services(2, { watchdogTimeout: ms(3_000) });
    const lease = await locks.getLock('order').lock();
    await other.forceRelease('order');
    await until(() => !lease.held);
    expect(await errorOf(lease.run(() => {}))).toBeInstanceOf(LockLostError);
    expect(await errorOf(lease.release())).toBeInstanceOf(LockLostError);
    expect(await errorOf(lease.extend('1s'))).toBeInstanceOf(LockNotOwnedError);
    await locked(locks.getLock('order'), (next) => expect(next.held).toBe(true));
  });

  it('do not count a scope whose lease was lost', async () => {
    const [locks, other] = await world.services(2, { watchdogTimeout: ms(3_000) });
    const lock = locks.getLock('order');
    const lease = await lock.lock();
    await lease.run(async () => {
      expect(lock.isHeldByCurrentScope()).toBe(true);
      await other.forceRelease('order');
      await until(() => !lock.isHeldByCurrentScope());
      expect(lock.getHoldCount()).toBe(0);
    });
    await errorOf(lease.release());
  });

  it('free a lock by force, no matter who holds it', async () => {
    const [locks, other] = await world.services(2);
    const lease = await locks.acquire('order');
    expect(await other.getLock('order').forceUnlock()).toBe(true);
    expect(await other.getLock('order').forceUnlock()).toBe(false);
    expect(await other.getLock('order').isLocked()).toBe(false);
    await errorOf(lease.release());
  });

  const remaining = (locks: LockService) => locks.getLock('order').remainTimeToLive();

  it('report how much of the lease remains', async () => {
    const [locks, other] = await world.services(2);
    expect(await remaining(locks)).toBe(-2);
    const lease = await locks.getLock('order').lock('10s');
    for (const service of [locks, other]) {
      expect(await remaining(service)).toBeGreaterThan(5_000);
      expect(await remaining(service)).toBeLessThanOrEqual(10_000);
    }
    await lease.release();
    expect(await remaining(other)).toBe(-2);
  });
});
