import { setTimeout as sleep } from 'node:timers/promises';
import {
  LockAbortedError,
  LockBusyError,
  LockConfigurationError,
  LockKeyError,
  LockLostError,
  LockNotOwnedError,
  LockUnavailableError,
} from '../../lib/engine/errors.js';
import { currentLease } from '../../lib/engine/scope/lock-scope.js';
import { ms, nothingIsLeft, openVirtualWorld, openWorld, STORES } from '../support/lock-world.js';
import { errorOf, latch, Section } from '../support/section.js';
import { until } from '../support/until.js';
import { refused } from '../support/watched/watched-backend.js';
import { locked } from './locked.js';

describe.each(STORES)('the multi-lock, on %s and another store', (store) => {
  const here = openWorld(store);
  const there = openWorld('memory');

  it('all or none', async () => {
    const [one, other] = await here.services(2);
    const [two, another] = await there.services(2);
    const lock = one.getMultiLock(
      one.getLock('a'),
      one.getFairLock('b'),
      two.getFencedLock('a'),
      two.getRedLock(two.getLock('c')),
    );
    const lease = await lock.lock();
    expect(lease.held).toBe(true);
    expect(await lock.isLocked()).toBe(true);
    for (const name of ['a', 'b']) expect(await other.tryAcquire(name)).toBeNull();
    for (const name of ['a', 'c']) expect(await another.tryAcquire(name)).toBeNull();
    await lease.release();
    expect(lease.held).toBe(false);
    for (const name of ['a', 'b']) expect(await other.isLocked(name)).toBe(false);
    for (const name of ['a', 'c']) expect(await another.isLocked(name)).toBe(false);
  });

  it('one busy member: the others are released', async () => {
    const [one, other] = await here.services(2);
    const [two, another] = await there.services(2);
    const busy = await another.acquire('b');
    const lock = one.getMultiLock(one.getLock('a'), two.getLock('b'), one.getLock('c'));
    expect(await lock.tryLock()).toBeNull();
    for (const name of ['a', 'c']) expect(await other.isLocked(name)).toBe(false);
    expect(await lock.tryLock(500)).toBeNull();
    for (const name of ['a', 'c']) expect(await other.isLocked(name)).toBe(false);
    await busy.release();
    await locked(lock, () => {});
  });

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
    expect(await lock.tryLock(600)).toBeNull();
    expect(performance.now() - since).toBeGreaterThanOrEqual(595);
    await busy.release();
    await lock.lock(400);
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
    await one.getMultiLock(one.getLock('a'), two.getLock('b')).lock(3_000);
    expect(await one.getLock('a').remainTimeToLive()).toBeGreaterThan(2_700);
  });

  it('does not shorten the lease of a member that a scope around it holds', async () => {
    const one = await here.service();
    const { locks: two, backend } = await there.process();
    const a = one.getLock('a');
    await locked(
      a,
      (outer) =>
        outer.run(async () => {
          await sleep(200); // more than a tenth of the shorter lease
          backend.disturb(async (execute) => {
            await sleep(300);
            return execute();
          }, 'acquire');
          await locked(
            one.getMultiLock(a, two.getLock('b')),
            async () => expect(await a.remainTimeToLive()).toBeGreaterThan(30_000),
            1_000,
          );
        }),
      60_000,
    );
  });

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

  it('takes plain locks of one service by one command', async () => {
    const { locks, backend } = await here.process();
    await locked(locks.getMultiLock(locks.getLock('a'), locks.getLock('b'), locks.getLock('c')), async (lease) => {
      expect(backend.commands).toEqual(['acquireAll']);
      expect(lease.names).toEqual(['a', 'b', 'c']);
      await lease.run(() => expect(currentLease()).toBe(lease));
    });
  });

  it('is re-entrant in its scope, as are its members', async () => {
    const one = await here.service();
    const two = await there.service();
    const [a, b] = [one.getLock('a'), two.getLock('b')];
    const lock = () => one.getMultiLock(b, a);
    await locked(lock(), (outer) =>
      outer.run(async () => {
        expect([lock().getHoldCount(), a.getHoldCount(), b.getHoldCount()]).toEqual([1, 1, 1]);
        await locked(lock(), (inner) =>
          inner.run(async () => {
            await locked(a, () => {});
            await one.withLock('a', () => {
              expect([lock().getHoldCount(), a.getHoldCount(), b.getHoldCount()]).toEqual([2, 3, 2]);
            });
          }),
        );
        expect(lock().isHeldByCurrentScope()).toBe(true);
      }),
    );
    expect(lock().isHeldByCurrentScope()).toBe(false);
    expect(await lock().isLocked()).toBe(false);
  });

  it('gives one lease: what it is in its scope, with a token for each member', async () => {
    const [one, two] = await Promise.all([here, there].map((world) => world.service({ watchdogTimeout: ms(30_000) })));
    const lease = await one.getMultiLock(one.getLock('a'), two.getLock('b')).lock();
    expect(lease.name).toBe('a, b');
    expect(lease.names).toEqual(['a', 'b']);
    expect([...lease.tokens.keys()]).toEqual(['a', 'b']);
    expect(lease.remainingTime()).toBeGreaterThan(20_000);
    for (const [name, owner] of lease.owners)
      expect((await (name === 'a' ? one : two).inspect(name)).owners).toMatchObject([{ owner }]);
    expect([...lease.owners.keys()]).toEqual(['a', 'b']);
    expect(lease.owner).toBe(lease.owners.get('a'));
    lease.assertHeld();
    if (new Set(lease.tokens.values()).size > 1) expect(() => lease.fencingToken).toThrow('tokens.get(name)');
    await lease.run(async (given) => {
      expect(given).toBe(lease);
      expect(currentLease()).toBe(lease);
      for (const name of ['a', 'b']) {
        expect(currentLease(name)?.names).toEqual([name]);
        expect(currentLease(name)?.fencingToken).toBe(lease.tokens.get(name));
      }
    });
    expect(currentLease()).toBeUndefined();
    await lease.extend('2m');
    expect(lease.remainingTime()).toBeGreaterThan(60_000);
    await lease.release();
    await lease.release();
    expect(lease.remainingTime()).toBe(0);
    expect(() => lease.assertHeld()).toThrow(LockNotOwnedError);
    expect(await errorOf(lease.extend('1m'))).toBeInstanceOf(LockNotOwnedError);
    expect(await errorOf(lease.run(() => {}))).toBeInstanceOf(LockNotOwnedError);
  });

  it('names members of different services that have the same name by where they are kept', async () => {
    const one = await here.service();
    const [two, three] = await there.services(2);
    const { description } = one.engine.services.backend;
    const lock = one.getMultiLock(one.getLock('a'), two.getLock('a'), three.getLock('b'));
    await locked(lock, (lease) => {
      const keys = [...lease.tokens.keys()].sort();
      const memory = description === 'memory' ? 'a (memory, 2)' : 'a (memory)';
      expect(keys).toEqual([`a (${description})`, memory, 'b'].sort());
      expect(currentLease('a')).toBeUndefined();
    });
  });

  it('excludes the children of two scopes of it', async () => {
    const one = await here.service();
    const two = await there.service();
    const section = new Section();
    await locked(one.getMultiLock(one.getLock('a'), two.getLock('b')), (lease) =>
      Promise.all(
        ['a', 'b', 'c', 'd'].map((who) =>
          lease.run(() => (who < 'c' ? one : two).withLock(who < 'c' ? 'a' : 'b', () => section.pass(who, 3))),
        ),
      ),
    );
    expect(section.most).toBe(2); // one for each of the locks
  });

  it('ends its wait when a signal aborts', async () => {
    const [one, other] = await here.services(2);
    const two = await there.service();
    const controller = new AbortController();
    await locked(other.getLock('a'), async () => {
      const { signal } = controller;
      for (const lock of [one.getLock('a'), one.getMultiLock(one.getLock('a'), two.getLock('b'))]) {
        const waiting = errorOf(lock.lock(undefined, { signal }));
        controller.abort();
        expect(await waiting).toBeInstanceOf(LockAbortedError);
        expect(await errorOf(lock.tryLock('1s', undefined, { signal }))).toBeInstanceOf(LockAbortedError);
      }
    });
  });

  it('holds a member twice that a scope around it holds', async () => {
    const [one, other] = await here.services(2);
    const two = await there.service();
    const a = one.getLock('a');
    await locked(a, (outer) =>
      outer.run(async () => {
        await locked(one.getMultiLock(a, two.getLock('b')), () => {});
        expect(a.getHoldCount()).toBe(1);
        expect(await other.tryAcquire('a')).toBeNull();
      }),
    );
    expect(await other.isLocked('a')).toBe(false);
  });

  it('keeps branches of one Promise.all apart', async () => {
    const one = await here.service();
    const two = await there.service();
    const section = new Section();
    await Promise.all(
      ['a', 'b', 'c'].map((who) =>
        locked(one.getMultiLock(one.getLock('a'), two.getLock('b')), () => section.pass(who, 3)),
      ),
    );
    expect(section.most).toBe(1);
  });

  it('is made of the members of a multi-lock in it, each once', async () => {
    const one = await here.service();
    const two = await there.service();
    const inner = one.getMultiLock(one.getLock('b'), one.getLock('a'));
    const lock = two.getMultiLock(inner, two.getLock('c'), one.getLock('a'));
    expect(lock.name).toBe('a, b, c');
    await locked(lock, (lease) => lease.run(() => expect(inner.isHeldByCurrentScope()).toBe(true)));
    expect(await inner.isLocked()).toBe(false);
  });

  it('rolls back when a member fails', async () => {
    const [one, other] = await here.services(2);
    const { locks: two, backend } = await there.process();
    backend.disturb(refused, 'acquire');
    const lock = one.getMultiLock(one.getLock('a'), two.getLock('b'));
    expect(await errorOf(lock.tryLock())).toBeInstanceOf(LockUnavailableError);
    expect(await other.isLocked('a')).toBe(false);
    expect(await errorOf(lock.tryLock(100))).toBeInstanceOf(LockUnavailableError);
    // A caller whose time is over does not wait for the locks that it gives back.
    await until(async () => !(await other.isLocked('a')));
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
    expect(await errorOf(lock.tryLock(100))).toBeInstanceOf(LockUnavailableError);
    await until(async () => !(await other.isLocked('a')));
    silence.open();
  });

  it('reports that a member was lost, and frees the others at its release', async () => {
    const [one, other] = await here.services(2, { watchdogTimeout: ms(3_000) });
    const two = await there.service();
    const lease = await one.getMultiLock(one.getLock('a'), two.getLock('b')).lock();
    expect(lease.signal.aborted).toBe(false);
    await other.forceRelease('a');
    await until(() => !lease.held);
    await until(() => lease.signal.aborted);
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(lease.remainingTime()).toBe(0);
    expect(() => lease.assertHeld()).toThrow(LockLostError);
    expect(await errorOf(lease.run(() => {}))).toBeInstanceOf(LockLostError);
    expect(await errorOf(lease.extend('1m'))).toBeInstanceOf(LockLostError);
    await expect(lease.release()).rejects.toThrow(LockLostError);
    expect(await two.isLocked('b')).toBe(false);
  });

  it('ends its wait when a service shuts down', async () => {
    const one = await here.service();
    const [two, another] = await there.services(2);
    const busy = await another.acquire('b');
    const waiting = errorOf(one.getMultiLock(one.getLock('a'), two.getLock('b')).lock());
    await until(() => two.engine.waiting('b') === 1);
    await two.close();
    expect(await waiting).toBeInstanceOf(LockAbortedError);
    expect(await one.isLocked('a')).toBe(false);
    await busy.release();
  });

  it('ends its wait when a service shuts down whose lock is free', async () => {
    const [one, other] = await here.services(2);
    const two = await there.service();
    const busy = await other.acquire('a');
    const waiting = errorOf(one.getMultiLock(one.getLock('a'), two.getLock('b')).lock());
    await until(() => one.engine.waiting('a') === 1);
    await two.close();
    expect(await waiting).toBeInstanceOf(LockAbortedError);
    expect(one.engine.waiting('a')).toBe(0);
    await busy.release();
    // The release may reach Redis before the place of `one` is removed, which then passes the lock on.
    await until(async () => !(await one.isLocked('a')));
  });

  it('continues to wait in a body of the service that shuts down', async () => {
    const one = await here.service({ shutdownTimeout: ms(60_000) });
    const [two, another] = await there.services(2);
    const busy = await another.acquire('b');
    const body = one.withLock('order', async () => {
      const lease = await one.getMultiLock(one.getLock('a'), two.getLock('b')).lock();
      await lease.release();
      return 'sold';
    });
    await until(() => two.engine.waiting('b') === 1);
    const drained = one.drain();
    await busy.release();
    expect(await body).toBe('sold');
    await drained;
  });

  it('says which of its members was busy, and who holds it', async () => {
    const one = await here.service();
    const [two, another] = await there.services(2);
    for (const member of [two.getLock('b'), two.getRedLock(two.getLock('b'))]) {
      const busy = await another.acquire('b');
      for (const waitTime of [0, 200]) {
        const lock = one.getMultiLock(one.getLock('a'), member);
        expect(await lock.tryLock(waitTime)).toBeNull();
        const error = await errorOf(lock.acquireLease({ waitTime }));
        expect(error).toBeInstanceOf(LockBusyError);
        expect(error.message).toContain('Not all of the locks a, b were free');
        expect(error.message).toContain(`'b' is held by ${busy.owner}`);
        expect(error).toMatchObject({ lockName: 'a, b', holder: busy.owner });
      }
      await busy.release();
    }
  });

  it('leaves nothing behind', async () => {
    const [one, other] = await here.processes(2);
    const [two] = await there.processes(1);
    const lock = one.locks.getMultiLock(one.locks.getLock('a'), two.locks.getLock('b'));
    await locked(lock, () => {});
    const busy = await other.locks.acquire('a');
    expect(await lock.tryLock(500)).toBeNull();
    await busy.release();
    for (const process of [one, two]) await nothingIsLeft(process);
  });

  it('is refused without members, with one that is no lock, or with two that exclude each other', async () => {
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

describe('a multi-lock of several services, among callers of one lock each', () => {
  const world = openVirtualWorld();

  it.each([['kept'], ['fixed']])('is served again and again, with leases that are %s', async (lease) => {
    const [one, two] = [await world.process(), await world.process()];
    const { runtime } = world;
    let over = false;
    const crowd = [one, two].flatMap(({ locks }, n) =>
      Array.from({ length: 4 }, async () => {
        while (!over)
          await locks.withLock(`lock:${n}`, () => new Promise<void>((resolve) => runtime.timer(3, resolve)));
      }),
    );
    const both = one.locks.getMultiLock(one.locks.getLock('lock:0'), two.locks.getLock('lock:1'));
    let served = 0;
    const caller = async () => {
      while (!over) {
        const held = await both.lock(lease === 'fixed' ? '3s' : undefined);
        expect(held.held).toBe(true);
        served++;
        await held.release();
      }
    };
    const called = caller();
    await runtime.advance(30_000);
    over = true;
    await runtime.until(Promise.all([...crowd, called]));
    expect(served).toBeGreaterThan(3);
  });
});
