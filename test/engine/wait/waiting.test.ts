import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { LockAbortedError, LockBusyError } from '../../../lib/engine/errors.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { type LockProcess, nothingIsLeft, openWorld, STORES } from '../../support/lock-world.js';
import { errorOf, latch, Section } from '../../support/section.js';
import { woken } from '../../support/time-limits.js';
import { until } from '../../support/until.js';
import { answerAfter } from '../../support/watched/watched-backend.js';
import { WatchedAbort } from '../../support/watched/watched-signal.js';

describe.each(STORES)('waiting, on %s', (store) => {
  const world = openWorld(store);

  /** A process that holds the lock, and one that waits for it: asleep and subscribed. */
  const holderAndWaiter = async (): Promise<{ holder: Lease; waiter: LockProcess }> => {
    const [other, waiter] = await world.processes(2);
    return { holder: await other.locks.acquire('order'), waiter };
  };
  /** Settles when this process has tried this often, and will not try again until it is woken. */
  const asleep = ({ backend }: LockProcess, attempts = 2) =>
    until(async () => {
      const quiet = () => backend.subscriptions === 1 && backend.count('acquire') >= attempts && backend.underWay === 0;
      if (!quiet()) return false;
      await setImmediate(); // the last answer is processed, and may lead to another attempt
      return quiet();
    });

  it('serves the callers of one process in the order of their arrival', async () => {
    const locks = await world.service();
    const section = new Section();
    const callers = Array.from({ length: 300 }, (_, i) => String(i));
    await Promise.all(callers.map((who) => locks.withLock('order', () => section.pass(who))));
    expect(section.most).toBe(1);
    expect(section.entries).toEqual(callers);
  });

  it('serves callers with fixed, watchdog and other leases in the order of their arrival', async () => {
    const locks = await world.service();
    const section = new Section();
    const callers = Array.from({ length: 60 }, (_, i) => String(i));
    const terms = [{}, { leaseTime: '5s' }, { leaseTime: '7s' }, { waitTime: '20s' }] as const;
    await Promise.all(callers.map((who, i) => locks.withLock('order', terms[i % 4], () => section.pass(who))));
    expect(section.most).toBe(1);
    expect(section.entries).toEqual(callers);
  });

  it('costs one subscription and no command while 1,000 callers wait, serves them in order and leaves nothing behind', async () => {
    const { holder, waiter } = await holderAndWaiter();
    const abort = new WatchedAbort();
    const section = new Section();
    const callers = Array.from({ length: 1_000 }, (_, i) => String(i));
    const { signal } = abort;
    const served = Promise.all(
      callers.map((who) => waiter.locks.withLock('order', { signal, waitTime: '1h' }, () => section.pass(who))),
    );
    await asleep(waiter);
    // Node.js warns of a leak at more than ten.
    expect(abort.listeners).toBeLessThanOrEqual(10);
    // While somebody waits, the backend is asked every few seconds whether it still answers.
    const commands = () => waiter.backend.count() - waiter.backend.count('ping');
    const asked = commands();
    expect(asked).toBeLessThanOrEqual(2);
    await sleep(300);
    expect(commands()).toBe(asked);
    expect(waiter.backend.subscribed).toBe(1);
    await holder.release();
    await woken(served);
    expect(section.most).toBe(1);
    expect(section.entries).toEqual(callers);
    expect(waiter.backend.subscribed).toBe(1);
    expect(waiter.backend.count()).toBeLessThan(1_000);
    expect(abort.listeners).toBe(0);
    await nothingIsLeft(waiter);
  });

  it('serves the others in order when callers leave by abort or timeout, at the front, in the middle and at the end', async () => {
    const { holder, waiter } = await holderAndWaiter();
    const section = new Section();
    const abort = new WatchedAbort();
    const callers = Array.from({ length: 30 }, (_, i) => i);
    const results = callers.map((i) =>
      waiter.locks
        .withLock('order', i % 3 === 0 ? { signal: abort.signal } : i % 3 === 1 ? { waitTime: 1_000 } : {}, () =>
          section.pass(String(i)),
        )
        .then(
          () => 'served',
          (error) => error.name,
        ),
    );
    await asleep(waiter);
    abort.abort();
    await Promise.all(results.filter((_, i) => i % 3 < 2));
    expect(waiter.locks.engine.waiting('order')).toBe(10);
    await holder.release();
    expect(await woken(Promise.all(results))).toEqual(
      callers.map((i) => ['LockAbortedError', 'LockBusyError', 'served'][i % 3]),
    );
    expect(section.entries).toEqual(callers.filter((i) => i % 3 === 2).map(String));
    expect(abort.listeners).toBe(0);
    await nothingIsLeft(waiter);
  });

  it('leaves nothing behind of 2,000 names that were locked once, neither in the process nor in the store', async () => {
    const [process, other] = await world.processes(2, { commandTimeout: 20_000 }); // a busy machine takes long for so many
    const names = Array.from({ length: 2_000 }, (_, i) => `order:${i}`);
    await Promise.all(names.map((name) => process.locks.withLock(name, async () => {})));
    await Promise.all(names.map((name) => process.locks.tryAcquire(name).then((lease) => lease?.release())));
    await nothingIsLeft(process);
    for (const name of names.slice(0, 20)) expect(await other.locks.isLocked(name)).toBe(false);
    if (store === 'Redis') expect(await world.redis.client().keys(`${world.keyPrefix}*`)).toEqual([]);
  });

  it('wakes a waiter of another process long before the lease would end', async () => {
    const { holder, waiter } = await holderAndWaiter();
    const waiting = waiter.locks.acquire('order');
    await asleep(waiter);
    await holder.release();
    await (await woken(waiting)).release();
    await nothingIsLeft(waiter);
  });

  describe('with a waitTime of 0', () => {
    it('gets a free lock by one command', async () => {
      const { locks, backend } = await world.process();
      const lease = await locks.acquire('order', { waitTime: 0 });
      expect(backend.commands).toEqual(['acquire']);
      await lease.release();
    });

    it('is refused by one command while another process holds the lock, and leaves nothing', async () => {
      const { waiter } = await holderAndWaiter();
      await expect(waiter.locks.acquire('order', { waitTime: 0 })).rejects.toThrow(LockBusyError);
      expect(waiter.backend.commands).toEqual(['acquire']);
      await nothingIsLeft(waiter);
    });

    it('is refused without a command while this process holds the lock', async () => {
      const { locks, backend } = await world.process();
      const lease = await locks.acquire('order');
      await expect(locks.acquire('order', { waitTime: 0 })).rejects.toThrow('(this process)');
      expect(backend.count()).toBe(1);
      await lease.release();
    });

    it('does not overtake a caller that waits in this process', async () => {
      const { holder, waiter } = await holderAndWaiter();
      const waiting = waiter.locks.acquire('order');
      await asleep(waiter);
      await expect(waiter.locks.acquire('order', { waitTime: 0 })).rejects.toThrow(LockBusyError);
      await holder.release();
      await (await woken(waiting)).release();
    });

    it('serves one of many callers that try at once', async () => {
      const services = await world.services(3);
      const tries = await Promise.all(
        Array.from({ length: 30 }, (_, i) => services[i % 3].tryAcquire('order', { waitTime: 0 })),
      );
      const leases = tries.filter((lease) => lease !== null);
      expect(leases.length).toBe(1);
      await leases[0].release();
    });

    it('gets a lock whose release is under way', async () => {
      const locks = await world.service();
      const lease = await locks.acquire('order');
      const released = lease.release();
      const next = await locks.acquire('order', { waitTime: 0 });
      await released;
      expect(next.held).toBe(true);
      await next.release();
    });
  });

  describe('ends at once', () => {
    const WAIT = 300;

    /**
     * Leaves in that phase, and expects that it takes effect in time, with the right error, and that no listener
     * remains.
     */
    const leaves = async (process: LockProcess, how: 'abort' | 'timeout', phase: () => Promise<unknown>) => {
      const abort = new WatchedAbort();
      const began = performance.now();
      const left = errorOf(
        process.locks.acquire('order', how === 'abort' ? { signal: abort.signal } : { waitTime: WAIT }),
      );
      if (how === 'abort') {
        await phase();
        abort.abort(new Error('enough'));
      }
      const error = await left;
      expect(error.name).toMatch(how === 'abort' ? /LockAbortedError/ : /LockBusyError|LockUnavailableError/);
      if (how === 'abort') expect(error.cause).toEqual(new Error('enough'));
      else expect(performance.now() - began).toBeLessThan(WAIT + 2_000);
      expect(abort.listeners).toBe(0);
    };
    const underWay = (process: LockProcess) => () => until(() => process.backend.count('acquire') > 0);
    const queued = (process: LockProcess, count: number) => () =>
      until(() => process.locks.engine.waiting('order') === count);

    it('when the signal was aborted before, and asks nothing', async () => {
      const { locks, backend } = await world.process();
      const error = await errorOf(locks.acquire('order', { signal: AbortSignal.abort(new Error('enough')) }));
      expect(error).toBeInstanceOf(LockAbortedError);
      expect(error.cause).toEqual(new Error('enough'));
      expect(backend.count()).toBe(0);
    });

    it.each(['abort', 'timeout'] as const)('by %s while asleep', async (how) => {
      const { holder, waiter } = await holderAndWaiter();
      await leaves(waiter, how, () => asleep(waiter));
      await nothingIsLeft(waiter);
      await holder.release();
    });

    it.each(['abort', 'timeout'] as const)(
      'by %s while its attempt is under way, and gives the lock back',
      async (how) => {
        const [process, other] = await world.processes(2);
        const late = latch();
        process.backend.disturb(async (execute) => {
          await late.promise;
          return execute();
        }, 'acquire');
        await leaves(process, how, underWay(process));
        late.open();
        await nothingIsLeft(process);
        expect(await other.locks.isLocked('order')).toBe(false);
      },
    );

    it.each(['abort', 'timeout'] as const)(
      'by %s while the answer is under way, and gives the lock back',
      async (how) => {
        const [process, other] = await world.processes(2);
        const late = latch();
        process.backend.disturb(answerAfter(late.promise), 'acquire');
        await leaves(process, how, () => until(() => other.locks.isLocked('order')));
        expect(await other.locks.isLocked('order')).toBe(true);
        late.open();
        await nothingIsLeft(process);
        expect(await other.locks.isLocked('order')).toBe(false);
      },
    );

    it.each(['abort', 'timeout'] as const)('by %s while the subscription is under way', async (how) => {
      const { holder, waiter } = await holderAndWaiter();
      waiter.backend.delaySubscriptions(new Promise(() => {}));
      await leaves(waiter, how, () => asleep(waiter, 1));
      await nothingIsLeft(waiter);
      await holder.release();
    });

    it.each(['abort', 'timeout'] as const)('by %s behind a holder of this process', async (how) => {
      const process = await world.process();
      const lease = await process.locks.acquire('order');
      await leaves(process, how, queued(process, 1));
      expect(process.locks.engine.waiting('order')).toBe(0);
      await lease.release();
      await nothingIsLeft(process);
    });

    it.each(['abort', 'timeout'] as const)('by %s behind other waiters', async (how) => {
      const { holder, waiter } = await holderAndWaiter();
      const first = waiter.locks.acquire('order');
      await asleep(waiter);
      await leaves(waiter, how, queued(waiter, 2));
      const last = waiter.locks.acquire('order');
      await holder.release();
      await (await woken(first)).release();
      await (await woken(last)).release();
      await nothingIsLeft(waiter);
    });

    it.each(['abort', 'timeout'] as const)('by %s while this process lets another one go first', async (how) => {
      const [process, other] = await world.processes(2);
      const mine = await process.locks.acquire('order');
      const theirs = other.locks.acquire('order');
      await asleep(other);
      await sleep(30); // longer than one process may keep a lock that another one wants
      const abort = new AbortController();
      const next = errorOf(
        process.locks.acquire('order', how === 'abort' ? { signal: abort.signal } : { waitTime: WAIT }),
      );
      await mine.release();
      if (how === 'abort') abort.abort();
      expect((await next).name).toBe(how === 'abort' ? 'LockAbortedError' : 'LockBusyError');
      await (await woken(theirs)).release();
      await nothingIsLeft(process);
      await nothingIsLeft(other);
    });
  });

  describe('a head that leaves while its acquisition is under way', () => {
    const lateAnswers = async (count: number) => {
      const [process, other] = await world.processes(2);
      const late = latch();
      process.backend.disturb(answerAfter(late.promise), 'acquire');
      const abort = new AbortController();
      const head = errorOf(process.locks.acquire('order', { signal: abort.signal }));
      const others = Array.from({ length: count }, () => process.locks.acquire('order'));
      await until(async () => other.locks.isLocked('order'));
      abort.abort();
      expect(await head).toBeInstanceOf(LockAbortedError);
      return { process, other, late, others };
    };

    it('passes the lock on to the next waiter', async () => {
      const { process, late, others } = await lateAnswers(2);
      late.open();
      const first = await woken(others[0]);
      expect(first.held).toBe(true);
      expect(process.backend.count('acquire')).toBe(1);
      await first.release();
      const second = await woken(others[1]);
      expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
      await second.release();
      await nothingIsLeft(process);
    });

    it('gives the lock back when nobody waits', async () => {
      const { process, other, late } = await lateAnswers(0);
      late.open();
      await until(async () => !(await other.locks.isLocked('order')));
      await nothingIsLeft(process);
    });

    it('leaves the lock to a caller behind it that tries once', async () => {
      const { process, late } = await lateAnswers(0);
      const trier = process.locks.acquire('order', { waitTime: 0 });
      late.open();
      const lease = await trier;
      expect(lease.held).toBe(true);
      await lease.release();
      await nothingIsLeft(process);
    });
  });
});
