import { setTimeout as sleep } from 'node:timers/promises';
import {
  LockAbortedError,
  LockConfigurationError,
  LockKeyError,
  LockLostError,
  LockNotOwnedError,
  LockUnavailableError,
} from '../../lib/engine/errors.js';
import { currentLease } from '../../lib/engine/lock-scope.js';
import { ms, nothingIsLeft, openWorld, STORES } from '../support/lock-world.js';
import { errorOf, latch, Section } from '../support/section.js';
import { until } from '../support/until.js';
import { refused } from '../support/watched-backend.js';
import { flow, locked } from './flow.js';

describe.each(STORES)('the multi-lock, on %s and another store', (store) => {
  const here = openWorld(store);
  const there = openWorld('memory');

  it('all or none', () =>
    flow(async () => {
      const [one, other] = await here.services(2);
      const [two, another] = await there.services(2);
      const lock = one.getMultiLock(
        one.getLock('a'),
        one.getFairLock('b'),
        two.getFencedLock('a'),
        two.getSpinLock('c'),
      );
      await lock.lock();
      expect(lock.isHeldByCurrentOwner()).toBe(true);
      expect(await lock.isLocked()).toBe(true);
      for (const name of ['a', 'b']) expect(await other.tryAcquire(name)).toBeNull();
      for (const name of ['a', 'c']) expect(await another.tryAcquire(name)).toBeNull();
      await lock.unlock();
      expect(lock.isHeldByCurrentOwner()).toBe(false);
      for (const name of ['a', 'b']) expect(await other.isLocked(name)).toBe(false);
      for (const name of ['a', 'c']) expect(await another.isLocked(name)).toBe(false);
    }));

  it('one member busy releases the others', () =>
    flow(async () => {
      const [one, other] = await here.services(2);
      const [two, another] = await there.services(2);
      const busy = await another.acquire('b');
      const lock = one.getMultiLock(one.getLock('a'), two.getLock('b'), one.getLock('c'));
      expect(await lock.tryLock()).toBe(false);
      for (const name of ['a', 'c']) expect(await other.isLocked(name)).toBe(false);
      expect(await lock.tryLock(50)).toBe(false);
      for (const name of ['a', 'c']) expect(await other.isLocked(name)).toBe(false);
      expect(lock.isHeldByCurrentOwner()).toBe(false);
      await expect(lock.unlock()).rejects.toThrow(LockNotOwnedError);
      await busy.release();
      expect(await lock.tryLock()).toBe(true);
      await lock.unlock();
    }));

  it('holds nothing while it waits for one member', async () => {
    const [one, other] = await here.services(2);
    const [two, another] = await there.services(2);
    const busy = await another.acquire('b');
    const waiting = locked(one.getMultiLock(one.getLock('a'), two.getLock('b')), () => {});
    await until(() => two.engine.waiting('b') === 1);
    await other.withLock('a', () => {});
    await busy.release();
    await waiting;
  });

  it('wait and lease time-outs', async () => {
    const [one, other] = await here.services(2);
    const two = await there.service();
    const lock = one.getMultiLock(one.getLock('a'), two.getLock('b'));
    const busy = await other.acquire('a');
    const since = performance.now();
    expect(await flow(() => lock.tryLock(200))).toBe(false);
    expect(performance.now() - since).toBeGreaterThanOrEqual(195);
    await busy.release();
    await flow(() => lock.lock(400));
    expect(await other.getLock('a').remainTimeToLive()).toBeLessThanOrEqual(400);
    await locked(lock, () => {});
  });

  it('begins its lease when the last member is acquired', async () => {
    const one = await here.service();
    const { locks: two, backend } = await there.process();
    backend.disturb(async (execute) => {
      await sleep(600);
      return execute();
    }, 'acquire');
    await flow(() => one.getMultiLock(one.getLock('a'), two.getLock('b')).lock(3_000));
    expect(await one.getLock('a').remainTimeToLive()).toBeGreaterThan(2_700);
  });

  it('does not shorten the lease that the flow had of a member before', () =>
    flow(async () => {
      const one = await here.service();
      const { locks: two, backend } = await there.process();
      const a = one.getLock('a');
      await a.lock('60s');
      await sleep(200); // of the shorter lease, more than a tenth
      backend.disturb(async (execute) => {
        await sleep(300);
        return execute();
      }, 'acquire');
      const lock = one.getMultiLock(a, two.getLock('b'));
      await lock.lock(1_000);
      expect(await a.remainTimeToLive()).toBeGreaterThan(30_000);
      await lock.unlock();
      await a.unlock();
    }));

  it('serves those who want overlapping members, each once, whatever order they name them in', async () => {
    const [one, two, three] = await here.services(3);
    const [uno, due, tre] = await there.services(3);
    const pairs = [
      [one, uno],
      [two, due],
      [three, tre],
    ] as const;
    const sections = [new Section(), new Section(), new Section()];
    await Promise.all(
      Array.from({ length: 30 }, (_, n) => {
        const [service, other] = pairs[n % 3];
        const members = [service.getLock('a'), other.getLock('b'), service.getFairLock('c')];
        const wanted = [0, 1, 2].filter((member) => member !== n % 4);
        const order = n % 2 ? wanted : [...wanted].reverse();
        return locked(service.getMultiLock(...order.map((member) => members[member])), () =>
          Promise.all(wanted.map((member) => sections[member].pass(`${n}`, 1))),
        );
      }),
    );
    for (const section of sections) {
      expect(section.most).toBe(1);
      expect(new Set(section.entries).size).toBe(section.entries.length);
    }
    expect(sections.reduce((sum, { entries }) => sum + entries.length, 0)).toBe(30 * 2 + 7);
  });

  it('takes plain locks of one service by one command', () =>
    flow(async () => {
      const { locks, backend } = await here.process();
      const lock = locks.getMultiLock(locks.getLock('a'), locks.getLock('b'), locks.getLock('c'));
      await lock.lock();
      expect(backend.commands).toEqual(['acquireAll']);
      expect(currentLease()?.names).toEqual(['a', 'b', 'c']);
      await lock.unlock();
    }));

  it('is re-entrant, as are its members inside of it', () =>
    flow(async () => {
      const one = await here.service();
      const two = await there.service();
      const [a, b] = [one.getLock('a'), two.getLock('b')];
      const lock = () => one.getMultiLock(b, a);
      await lock().lock();
      expect(await lock().tryLock()).toBe(true);
      await a.lock();
      await one.withLock('a', () => {});
      expect([lock().getHoldCount(), a.getHoldCount(), b.getHoldCount()]).toEqual([2, 3, 2]);
      await a.unlock();
      await lock().unlock();
      expect(lock().isHeldByCurrentOwner()).toBe(true);
      await lock().unlock();
      expect(await lock().isLocked()).toBe(false);
    }));

  it('holds a member twice that the flow held before', () =>
    flow(async () => {
      const [one, other] = await here.services(2);
      const two = await there.service();
      const a = one.getLock('a');
      await a.lock();
      const lock = one.getMultiLock(a, two.getLock('b'));
      await lock.lock();
      await lock.unlock();
      expect(a.getHoldCount()).toBe(1);
      expect(await other.tryAcquire('a')).toBeNull();
      await a.unlock();
      expect(await other.isLocked('a')).toBe(false);
    }));

  it('is unlocked by its own handle, and not by that of a member', () =>
    flow(async () => {
      const one = await here.service();
      const [a, b] = [one.getLock('a'), one.getLock('b')];
      const lock = one.getMultiLock(a, b);
      await lock.lock();
      await expect(a.unlock()).rejects.toThrow(LockNotOwnedError);
      expect(b.isHeldByCurrentOwner()).toBe(true);
      await lock.unlock();
    }));

  it('keeps branches of one Promise.all apart', () =>
    flow(async () => {
      const one = await here.service();
      const two = await there.service();
      const section = new Section();
      const branch = async (who: string) => {
        const lock = one.getMultiLock(one.getLock('a'), two.getLock('b'));
        await lock.lock();
        await section.pass(who, 3);
        await lock.unlock();
      };
      await Promise.all(['a', 'b', 'c'].map(branch));
      expect(section.most).toBe(1);
    }));

  it('is made of the members of a multi-lock in it, each once', () =>
    flow(async () => {
      const one = await here.service();
      const two = await there.service();
      const inner = one.getMultiLock(one.getLock('b'), one.getLock('a'));
      const lock = two.getMultiLock(inner, two.getLock('c'), one.getLock('a'));
      expect(lock.name).toBe('a, b, c');
      await lock.lock();
      expect(inner.isHeldByCurrentOwner()).toBe(true);
      await lock.unlock();
      expect(await inner.isLocked()).toBe(false);
    }));

  it('rolls back when a member fails', async () => {
    const [one, other] = await here.services(2);
    const { locks: two, backend } = await there.process();
    backend.disturb(refused, 'acquire');
    const lock = one.getMultiLock(one.getLock('a'), two.getLock('b'));
    expect(await errorOf(flow(() => lock.tryLock()))).toBeInstanceOf(LockUnavailableError);
    expect(await other.isLocked('a')).toBe(false);
    expect(await errorOf(flow(() => lock.tryLock(100)))).toBeInstanceOf(LockUnavailableError);
    expect(await other.isLocked('a')).toBe(false);
    const waiting = locked(lock, () => {});
    await until(() => backend.count('acquire') > 5);
    backend.heal();
    await waiting;
  });

  it('answers in time when a member does not', async () => {
    const [one, other] = await here.services(2);
    const { locks: two, backend } = await there.process();
    const silence = latch();
    backend.disturb((execute, request) => silence.promise.then(() => refused(execute, request)), 'acquire');
    const lock = one.getMultiLock(one.getLock('a'), two.getLock('b'));
    expect(await errorOf(flow(() => lock.tryLock(100)))).toBeInstanceOf(LockUnavailableError);
    expect(await other.isLocked('a')).toBe(false);
    silence.open();
  });

  it('tells at unlock() that a member was lost, and frees the others', () =>
    flow(async () => {
      const [one, other] = await here.services(2, { watchdogTimeout: ms(300) });
      const two = await there.service();
      const lock = one.getMultiLock(one.getLock('a'), two.getLock('b'));
      await lock.lock();
      await other.forceRelease('a');
      await until(() => !lock.isHeldByCurrentOwner());
      await expect(lock.unlock()).rejects.toThrow(LockLostError);
      expect(await two.isLocked('b')).toBe(false);
    }));

  it('ends its wait when a service shuts down', async () => {
    const one = await here.service();
    const [two, another] = await there.services(2);
    const busy = await another.acquire('b');
    const waiting = errorOf(flow(() => one.getMultiLock(one.getLock('a'), two.getLock('b')).lock()));
    await until(() => two.engine.waiting('b') === 1);
    await two.close();
    expect(await waiting).toBeInstanceOf(LockAbortedError);
    expect(await one.isLocked('a')).toBe(false);
    await busy.release();
  });

  it('leaves nothing behind', async () => {
    const [one, other] = await here.processes(2);
    const [two] = await there.processes(1);
    const lock = one.locks.getMultiLock(one.locks.getLock('a'), two.locks.getLock('b'));
    await locked(lock, () => {});
    const busy = await other.locks.acquire('a');
    expect(await flow(() => lock.tryLock(30))).toBe(false);
    await busy.release();
    for (const process of [one, two]) await nothingIsLeft(process);
  });

  it('is refused without members, with a stranger, or with two that exclude each other', async () => {
    const locks = await here.service();
    expect(() => locks.getMultiLock()).toThrow(LockKeyError);
    for (const stranger of [undefined, null, 'a', {}])
      expect(() => locks.getMultiLock(locks.getLock('a'), stranger as never)).toThrow(LockConfigurationError);
    const { readLock, writeLock } = {
      readLock: locks.getReadWriteLock('a').readLock(),
      writeLock: locks.getReadWriteLock('a').writeLock(),
    };
    expect(() => locks.getMultiLock(readLock, writeLock)).toThrow(/in two ways/);
    expect(() => locks.getMultiLock(locks.getLock('a'), writeLock)).toThrow(LockConfigurationError);
    expect(await errorOf(locks.getMultiLock(locks.getLock('a'), locks.getLock('')).lock())).toBeInstanceOf(
      LockKeyError,
    );
    expect(await locks.isLocked('a')).toBe(false);
  });
});
