import { setTimeout as sleep } from 'node:timers/promises';
import {
  LockAbortedError,
  LockBusyError,
  LockError,
  LockKeyError,
  LockLostError,
  LockUnavailableError,
} from '../../../lib/engine/errors.js';
import type { Lease, MultiLease } from '../../../lib/engine/terms/lease.js';
import {
  leftovers,
  ms,
  NOTHING,
  nothingIsLeft,
  openVirtualWorld,
  openWorld,
  STORES,
} from '../../support/lock-world.js';
import { errorOf, latch, Section } from '../../support/section.js';
import { until } from '../../support/until.js';
import { answerAfter, answerLost, refused } from '../../support/watched/watched-backend.js';
import { WatchedAbort } from '../../support/watched/watched-signal.js';

describe.each(STORES)('several locks at once, on %s', (store) => {
  const world = openWorld(store);

  it('are held together, sorted and each once, by one command', async () => {
    const [process, other] = await world.processes(2);
    const lease = await process.locks.acquire(['b', 'c', 'a', 'b']);
    expect(lease.names).toEqual(['a', 'b', 'c']);
    expect(lease.name).toBe('a, b, c');
    expect(lease.held).toBe(true);
    expect(process.backend.commands).toEqual(['acquireAll']);
    for (const name of ['a', 'b', 'c']) expect(await other.locks.tryAcquire(name)).toBeNull();
    await lease.release();
    for (const name of ['a', 'b', 'c']) expect(await other.locks.isLocked(name)).toBe(false);
    await nothingIsLeft(process);
  });

  it('of one name are one lock', async () => {
    const locks = await world.service();
    const lease = await locks.acquire(['a', 'a']);
    expect(lease.name).toBe('a');
    expect((lease as Lease).fencingToken).toBe(lease.tokens.get('a'));
    await lease.release();
  });

  it('have a fencing token each', async () => {
    const locks = await world.service();
    const lease = await locks.acquire(['a', 'b']);
    expect([...lease.tokens.keys()]).toEqual(['a', 'b']);
    const [a, b] = [...lease.tokens.values()];
    if (a === b) expect((lease as Lease).fencingToken).toBe(a);
    else expect(() => (lease as Lease).fencingToken).toThrow(LockError);
    await lease.release();
    const later = await locks.acquire(['a', 'b']);
    expect(later.tokens.get('a')).toBeGreaterThan(a);
    expect(later.tokens.get('b')).toBeGreaterThan(b);
    await later.release();
  });

  it('have an owner each', async () => {
    const locks = await world.service();
    const lease = await locks.acquire(['a', 'b']);
    expect([...lease.owners.keys()]).toEqual(['a', 'b']);
    expect(new Set(lease.owners.values()).size).toBe(2);
    expect(lease.owner).toBe(lease.owners.get('a'));
    for (const [name, owner] of lease.owners)
      expect((await locks.inspect(name)).owners).toMatchObject([{ owner, mine: true }]);
    await lease.release();
    const single = await locks.acquire('a');
    expect([...single.owners]).toEqual([['a', single.owner]]);
    await single.release();
  });

  it('of no name, or of a bad one, are refused, and nothing is locked', async () => {
    const { locks, backend } = await world.process();
    await expect(locks.acquire([])).rejects.toThrow(LockKeyError);
    await expect(locks.acquire(['a', ''])).rejects.toThrow(LockKeyError);
    await expect(locks.acquire(['a', 7 as never])).rejects.toThrow(LockKeyError);
    await expect(locks.acquire([['a'] as never])).rejects.toThrow(LockKeyError);
    expect(backend.count()).toBe(0);
  });

  it('hold nothing while one of them is busy elsewhere', async () => {
    const [process, other] = await world.processes(2);
    const busy = await other.locks.acquire('b');
    const waiting = process.locks.acquire(['a', 'b', 'c']);
    await until(() => process.backend.subscriptions === 1);
    for (const name of ['a', 'c']) {
      const lease = await other.locks.acquire(name, { waitTime: '10s' });
      await lease.release();
    }
    await busy.release();
    const lease = await waiting;
    expect(lease.names).toEqual(['a', 'b', 'c']);
    await lease.release();
    await nothingIsLeft(process);
  });

  it('hold nothing while one of them is busy in the same process', async () => {
    const process = await world.process();
    const busy = await process.locks.acquire('b');
    const waiting = process.locks.acquire(['a', 'b', 'c']);
    await sleep(5);
    await (await process.locks.acquire('a')).release();
    await busy.release();
    await (await waiting).release();
    await nothingIsLeft(process);
  });

  it('give back the one that they have waited for when another one is busy then', async () => {
    const [process, other] = await world.processes(2);
    const [a, b] = [await other.locks.acquire('a'), await other.locks.acquire('b')];
    const waiting = process.locks.acquire(['a', 'b']);
    await until(() => process.backend.subscriptions === 1);
    await a.release();
    await until(() => process.backend.subscriptions === 2 || process.backend.count('release') > 0);
    const again = await other.locks.acquire('a', { waitTime: '10s' });
    await again.release();
    await b.release();
    await (await waiting).release();
    await nothingIsLeft(process);
  });

  it('that are not all free at once are refused with a waitTime of 0, with the one that was busy', async () => {
    const [process, other] = await world.processes(2);
    const busy = await other.locks.acquire('b');
    const error = (await errorOf(process.locks.acquire(['a', 'b'], { waitTime: 0 }))) as LockBusyError;
    expect(error).toBeInstanceOf(LockBusyError);
    expect(error.message).toContain("'b' is held by");
    expect(error.holder).toBe(busy.owner);
    expect(await process.locks.tryAcquire(['a', 'b'])).toBeNull();
    expect(await other.locks.isLocked('a')).toBe(false);
    await nothingIsLeft(process);
    await busy.release();
  });

  it('never deadlock, whatever the order of the names', async () => {
    const services = await world.services(2);
    const section = new Section();
    const rounds = store === 'memory' ? 500 : 100;
    const orders = [
      ['a', 'b'],
      ['b', 'a'],
    ];
    await Promise.all(
      services.flatMap((locks) =>
        orders.map(async (names) => {
          for (let i = 0; i < rounds; i++) await locks.withLock(names, () => section.pass());
        }),
      ),
    );
    expect(section.most).toBe(1);
    expect(section.entries.length).toBe(4 * rounds);
  });

  it('in overlapping sets make progress, together with callers of one lock', async () => {
    const services = await world.services(2);
    const sets = [['a', 'b'], ['b', 'c'], ['c', 'a'], 'a', 'b', 'c'] as const;
    const inside = new Map<string, number>();
    let most = 0;
    await Promise.all(
      services.flatMap((locks) =>
        sets.map(async (names) => {
          for (let i = 0; i < 60; i++) {
            await locks.withLock(names, async ({ names }) => {
              for (const name of names) {
                inside.set(name, (inside.get(name) ?? 0) + 1);
                most = Math.max(most, inside.get(name) as number);
              }
              await null;
              for (const name of names) inside.set(name, (inside.get(name) as number) - 1);
            });
          }
        }),
      ),
    );
    expect(most).toBe(1);
  });

  describe('inside a scope that holds some of them', () => {
    it('share those and acquire the rest', async () => {
      const [process, other] = await world.processes(2);
      await process.locks.withLock('a', async (outer) => {
        await process.locks.withLock(['a', 'b'], async (inner) => {
          expect(inner.tokens.get('a')).toBe(outer.fencingToken);
          expect(await other.locks.tryAcquire('b')).toBeNull();
        });
        expect(await other.locks.isLocked('b')).toBe(false);
        expect(await other.locks.tryAcquire('a')).toBeNull();
        expect(outer.held).toBe(true);
      });
      await nothingIsLeft(process);
    });

    it('share all of them without a command', async () => {
      const { locks, backend } = await world.process();
      await locks.withLock(['a', 'b'], async () => {
        const commands = backend.count();
        await locks.withLock(['b', 'a'], async () => {
          await locks.withLock('a', async () => {});
        });
        expect(backend.count()).toBe(commands);
      });
    });

    it('wait for siblings inside, and keep them out', async () => {
      const locks = await world.service();
      const section = new Section();
      await locks.withLock('a', () =>
        Promise.all([
          locks.withLock('a', () => section.pass('1', 5)),
          locks.withLock(['a', 'b'], () => section.pass('2', 5)),
          locks.withLock('a', () => section.pass('3', 5)),
          locks.withLock(['b', 'a'], () => section.pass('4', 5)),
        ]),
      );
      expect(section.most).toBe(1);
      expect(section.entries.length).toBe(4);
    });

    it('keep siblings out also after a wait for another lock', async () => {
      const [locks, other] = await world.services(2);
      const busy = await other.acquire('b');
      const section = new Section();
      await locks.withLock('a', async () => {
        const both = locks.withLock(['a', 'b'], () => section.pass('both', 20));
        await sleep(20);
        const sibling = await locks.acquire('a');
        await busy.release();
        await sleep(20);
        await section.pass('sibling', 20);
        await sibling.release();
        await both;
      });
      expect(section.most).toBe(1);
      expect(section.entries).toEqual(['sibling', 'both']);
    });

    it('are acquired again when the scope has ended meanwhile', async () => {
      const [locks, other] = await world.services(2);
      const busy = await other.acquire('b');
      let leaked!: Promise<MultiLease>;
      const outer = await locks.withLock('a', async (lease) => {
        leaked = locks.acquire(['a', 'b']);
        await sleep(20);
        return lease;
      });
      await busy.release();
      const lease = await leaked;
      expect(lease.held).toBe(true);
      expect(lease.tokens.get('a')).toBeGreaterThan(outer.fencingToken);
      expect(await other.tryAcquire('a')).toBeNull();
      await lease.release();
      expect(await other.isLocked('a')).toBe(false);
    });
  });

  describe('inside a scope that ends while an attempt is under way', () => {
    it('are acquired again', async () => {
      const [process, other] = await world.processes(2);
      const { locks, backend } = process;
      const answer = latch();
      let leaked!: Promise<MultiLease>;
      const outer = await locks.withLock('a', async (lease) => {
        backend.disturb(answerAfter(answer.promise), 'acquire');
        leaked = locks.acquire(['a', 'b']);
        await until(() => other.locks.isLocked('b'));
        return lease;
      });
      answer.open();
      const lease = await leaked;
      expect(lease.tokens.get('a')).toBeGreaterThan(outer.fencingToken);
      expect(await other.locks.tryAcquire('a')).toBeNull();
      await lease.release();
      await nothingIsLeft(process);
    });
  });

  describe('that were not acquired in the end leave nothing behind', () => {
    it.each([
      ['elsewhere', 'abort'],
      ['elsewhere', 'timeout'],
      ['in the same process', 'abort'],
      ['in the same process', 'timeout'],
    ])('behind a holder %s, after %s', async (where, how) => {
      const [process, other] = await world.processes(2);
      const holder = await (where === 'elsewhere' ? other : process).locks.acquire('b');
      expect(await process.locks.isLocked('a')).toBe(false); // waits until it is connected
      const abort = new WatchedAbort();
      if (how === 'abort') setTimeout(() => abort.abort(new Error('enough')), 50);
      const options = how === 'abort' ? { signal: abort.signal } : { waitTime: 500 };
      const error = await errorOf(process.locks.acquire(['a', 'b', 'c'], options));
      expect(error).toBeInstanceOf(how === 'abort' ? LockAbortedError : LockBusyError);
      if (how === 'abort') expect(error.cause).toEqual(new Error('enough'));
      expect(abort.listeners).toBe(0);
      await holder.release();
      await nothingIsLeft(process);
      for (const name of ['a', 'b', 'c']) expect(await other.locks.isLocked(name)).toBe(false);
    });

    it.each(['abort', 'timeout'])('while the attempt is under way, after %s', async (how) => {
      const [process, other] = await world.processes(2);
      const answer = latch();
      process.backend.disturb(answerAfter(answer.promise), 'acquireAll');
      const abort = new WatchedAbort();
      const options = how === 'abort' ? { signal: abort.signal } : { waitTime: 500 };
      const refusal = errorOf(process.locks.acquire(['a', 'b'], options));
      await until(() => other.locks.isLocked('a'));
      if (how === 'abort') abort.abort();
      const error = await refusal;
      expect(error).toBeInstanceOf(how === 'abort' ? LockAbortedError : LockError);
      expect(await other.locks.isLocked('a')).toBe(true);
      answer.open();
      await nothingIsLeft(process);
      expect(abort.listeners).toBe(0);
      for (const name of ['a', 'b']) expect(await other.locks.isLocked(name)).toBe(false);
    });

    it('when the signal was aborted before', async () => {
      const { locks, backend } = await world.process();
      await expect(locks.acquire(['a', 'b'], { signal: AbortSignal.abort() })).rejects.toThrow(LockAbortedError);
      expect(backend.count()).toBe(0);
    });
  });

  it('are one lease: losing one of them is losing all', async () => {
    const [locks, other] = await world.services(2, { watchdogTimeout: ms(3_000) });
    const lease = await locks.acquire(['a', 'b']);
    await other.forceRelease('b');
    await until(() => lease.signal.aborted);
    expect(lease.held).toBe(false);
    expect(await errorOf(lease.release())).toBeInstanceOf(LockLostError);
    expect(await locks.isLocked('a')).toBe(false);
  });

  it('can be extended together', async () => {
    const locks = await world.service();
    const lease = await locks.acquire(['a', 'b'], { leaseTime: '1s' });
    await lease.extend('20s');
    expect(lease.remainingTime()).toBeGreaterThan(15_000);
    for (const name of ['a', 'b']) expect((await locks.inspect(name)).owners[0].remainingTime).toBeGreaterThan(15_000);
    await lease.release();
  });
});

describe('several locks at once, when the backend fails', () => {
  const world = openVirtualWorld();

  it.each([
    ['refused', refused],
    ['not answered', answerLost],
  ])('that were %s are tried again, and stay held', async (_, disturbance) => {
    const process = await world.process();
    const { locks, backend, runtime } = process;
    backend.disturb(disturbance, 'acquireAll');
    backend.disturb(refused, 'release');
    const waiting = locks.acquire(['a', 'b']);
    await runtime.settle();
    backend.heal();
    const lease = await runtime.until(waiting);
    expect(runtime.monotonic()).toBeLessThan(2_000);
    // The releases of the failed attempt must not release what is held now.
    await runtime.advance(10_000);
    for (const name of ['a', 'b']) expect((await locks.inspect(name)).owners.map(({ mine }) => mine)).toEqual([true]);
    await runtime.advance(60_000);
    expect(lease.held).toBe(true);
    await lease.release();
    await runtime.advance(10_000);
    for (const name of ['a', 'b']) expect(await locks.isLocked(name)).toBe(false);
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('tell callers with a waitTime or a signal in time, and leave no timer', async () => {
    const process = await world.process();
    const { locks, backend, runtime } = process;
    backend.disturb(refused, 'acquireAll');
    const abort = new AbortController();
    const aborted = errorOf(locks.acquire(['a', 'b'], { signal: abort.signal }));
    const late = errorOf(locks.acquire(['c', 'd'], { waitTime: 500 }));
    expect(await errorOf(locks.acquire(['e', 'f'], { waitTime: 0 }))).toBeInstanceOf(LockUnavailableError);
    await runtime.advance(500);
    abort.abort();
    expect(await aborted).toBeInstanceOf(LockAbortedError);
    expect(await late).toBeInstanceOf(LockUnavailableError);
    await runtime.settle();
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('report an outage that nothing else reports', async () => {
    const { locks, backend, runtime } = await world.process();
    const errors: Error[] = [];
    locks.on('error', (error) => errors.push(error));
    backend.disturb(refused, 'acquireAll');
    const waiting = locks.acquire(['a', 'b']);
    await runtime.advance(9_000);
    expect(errors).toEqual([expect.any(LockUnavailableError)]);
    backend.heal();
    await (await runtime.until(waiting)).release();
  });

  it('are acquired again when the scope around has lost its lock meanwhile', async () => {
    const { locks, runtime } = await world.process();
    const other = await world.process();
    const busy = await other.locks.acquire('b');
    const error = await errorOf(
      locks.withLock('a', async (outer) => {
        const both = locks.acquire(['a', 'b']);
        await other.locks.forceRelease('a');
        await runtime.advance(10_100);
        expect(outer.held).toBe(false);
        await busy.release();
        const lease = await runtime.until(both);
        expect(lease.held).toBe(true);
        expect(lease.tokens.get('a')).toBeGreaterThan(outer.fencingToken);
        await lease.release();
      }),
    );
    expect(error).toBeInstanceOf(LockLostError);
  });
});

describe('several locks at once, whose time is over', () => {
  const world = openVirtualWorld();

  // The timer of the caller and the timer of its wait for one lock are due at the same time, and Node.js may call
  // either of them first.
  it.each([
    ['first', -0.001],
    ['last', 0.001],
  ])('are all named when the timer that was started last is called %s', async (_, later) => {
    const { runtime } = world;
    const [process, other] = [await world.process(), await world.process()];
    const held = await runtime.until(other.locks.acquire('b'));
    const timer = runtime.timer.bind(runtime);
    let started = 0;
    runtime.timer = (delay, ...rest) => timer(delay + started++ * later, ...rest);
    const { message } = await runtime.until(errorOf(process.locks.acquire(['a', 'b'], { waitTime: 2_000 })));
    expect(message).toMatch(/^Not all of the locks a, b were free within 2000 ms: 'b' is held by .*; none was taken$/);
    await runtime.advance(1);
    expect(leftovers(process)).toEqual(NOTHING);
    await runtime.until(held.release());
  });
});
