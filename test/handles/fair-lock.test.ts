import { setTimeout as sleep } from 'node:timers/promises';
import type { LockService } from '../../lib/service/lock-service.js';
import { type LockProcess, ms, openWorld, STORES } from '../support/lock-world.js';
import { latch, Section } from '../support/section.js';
import { woken } from '../support/time-limits.js';
import { until } from '../support/until.js';
import { answerAfter, refused } from '../support/watched/watched-backend.js';
import { locked } from './locked.js';

/** How long a dead waiter delays others. */
const WAIT = 2_500;

describe.each(STORES)('the fair lock, on %s', (store) => {
  const world = openWorld(store);
  const waiting = async (service: LockService, name = 'order') => (await service.inspect(name)).waiting;

  /** Starts callers one after the other, each as soon as the one before it is in the queue. */
  async function arrive(callers: readonly (() => Promise<unknown>)[], service: LockService, before = 0) {
    const ended: Promise<unknown>[] = [];
    for (const [n, caller] of callers.entries()) {
      ended.push(caller());
      await until(async () => (await waiting(service)) >= before + n + 1);
    }
    return { ended: Promise.all(ended) };
  }

  /** Makes the process disappear: it neither refreshes its waiters nor sends anything else. */
  const die = ({ backend }: LockProcess) =>
    backend.disturb(refused, 'acquire', 'release', 'renew', 'refreshWaiters', 'removeWaiter');

  it('order of arrival over several instances', async () => {
    const services = await world.services(3);
    const [first] = services;
    const section = new Section();
    const lease = await first.acquire('order', { type: 'fair' });
    const names = Array.from({ length: 12 }, (_, n) => `${n}`);
    const callers = names.map(
      (who, n) => () => locked(services[n % 3].getFairLock('order'), () => section.pass(who, 1)),
    );
    const { ended } = await arrive(callers, first);
    await lease.release();
    await woken(ended);
    expect(section.entries).toEqual(names);
    expect(section.most).toBe(1);
  });

  it.each(['fair', 'reentrant', 'read', 'write'] as const)(
    'the release of a %s lock during an attempt of the waiter is not forgotten',
    async (type) => {
      const [holder, process] = await world.processes(2);
      const { locks, backend } = process;
      const lease = await holder.locks.acquire('order', { type });
      const leaving = new AbortController();
      const left = locks.acquire('order', { type: 'fair', signal: leaving.signal }).catch(() => {});
      await until(() => backend.isAsleep);
      const answered = latch();
      backend.disturb(answerAfter(answered.promise), 'acquire');
      const waiting = locks.acquire('order', { type: 'fair' });
      await until(async () => (await holder.backend.inspect(`${world.keyPrefix}order`)).queue.length === 2);
      leaving.abort();
      await left;
      await until(async () => (await holder.backend.inspect(`${world.keyPrefix}order`)).queue.length === 1);
      await lease.release();
      await sleep(200); // the message has arrived; the answer still says that the lock is busy
      backend.heal();
      answered.open();
      const next = await woken(waiting);
      expect(next.held).toBe(true);
      await next.release();
    },
  );

  it('lease timeout of a holder passes to the head', async () => {
    const [one, two, three] = await world.services(3);
    const entries: string[] = [];
    await one.getFairLock('order').lock(3_000);
    const { ended } = await arrive(
      [two, three].map((service, n) => () => locked(service.getFairLock('order'), () => entries.push(`${n}`))),
      one,
    );
    await ended;
    expect(entries).toEqual(['0', '1']);
  });

  it('a dead head waiter is skipped after the wait timeout', async () => {
    const [holder, dead, alive] = await world.processes(3, { waiterTimeout: ms(WAIT) });
    const lease = await holder.locks.acquire('order', { type: 'fair' });
    const aborted = dead.locks.acquire('order', { type: 'fair' }).catch(() => {});
    await until(async () => (await waiting(holder.locks)) === 1);
    die(dead);
    const served = locked(alive.locks.getFairLock('order'), () => {});
    await until(async () => (await waiting(holder.locks)) >= 1);
    await lease.release();
    await served;
    dead.backend.heal();
    await dead.locks.close();
    await aborted;
  });

  it('dead middle waiters do not add up beyond theirs', async () => {
    const [holder, alive, ...dead] = await world.processes(7, { waiterTimeout: ms(WAIT) });
    const lease = await holder.locks.acquire('order', { type: 'fair' });
    const entries: string[] = [];
    const first = await arrive(
      [() => locked(alive.locks.getFairLock('order'), () => entries.push('first'))],
      holder.locks,
    );
    await arrive(
      dead.map(
        ({ locks }) =>
          () =>
            locks.acquire('order', { type: 'fair' }).catch(() => {}),
      ),
      holder.locks,
      1,
    );
    for (const process of dead) die(process);
    const last = locked(alive.locks.getFairLock('order'), () => entries.push('last'));
    const died = performance.now();
    await lease.release();
    await Promise.all([first.ended, last]);
    expect(entries).toEqual(['first', 'last']);
    expect(performance.now() - died).toBeLessThan((dead.length - 1) * WAIT);
    for (const { backend } of dead) backend.heal();
  });

  it('a waiter that gives up leaves the queue and shifts the others’ times', async () => {
    const [one, two, three] = await world.services(3);
    const entries: string[] = [];
    const lease = await one.acquire('order', { type: 'fair' });
    const caller = (service: LockService, who: string) => () =>
      locked(service.getFairLock('order'), () => entries.push(who));
    const before = await arrive([caller(two, 'before')], one);
    const gaveUp = three.getFairLock('order').tryLock(1_500);
    await until(async () => (await waiting(one)) === 2);
    const after = await arrive([caller(two, 'after'), caller(three, 'last')], one, 2);
    expect(await gaveUp).toBeNull();
    await until(async () => (await waiting(one)) === 3);
    await lease.release();
    await woken(Promise.all([before.ended, after.ended]));
    expect(entries).toEqual(['before', 'after', 'last']);
    expect(await waiting(one)).toBe(0);
  });

  it('zero-wait try does not queue', async () => {
    const [one, two] = await world.services(2);
    const lease = await one.acquire('order', { type: 'fair' });
    const tried = two.getFairLock('order').tryLock();
    expect(await tried).toBeNull();
    expect(await waiting(one)).toBe(0);
    await lease.release();
    expect(await two.getFairLock('order').tryLock()).not.toBeNull();
  });

  it('zero-wait try does not overtake those who queue', async () => {
    const [one, two, three] = await world.services(3);
    const lease = await one.acquire('order', { type: 'fair' });
    const { ended } = await arrive([() => locked(two.getFairLock('order'), () => sleep(30))], one);
    const released = lease.release();
    expect(await three.getFairLock('order').tryLock()).toBeNull();
    await Promise.all([released, ended]);
  });

  it('several fair locks at once do not disturb each other', async () => {
    const services = await world.services(2);
    const names = ['a', 'b', 'c', 'd'];
    const sections = names.map(() => new Section());
    await Promise.all(
      names.flatMap((name, n) =>
        Array.from({ length: 6 }, (_, caller) =>
          locked(services[caller % 2].getFairLock(name), () => sections[n].pass(`${caller}`, 2)),
        ),
      ),
    );
    for (const section of sections) {
      expect(section.most).toBe(1);
      expect([...section.entries].sort()).toEqual(['0', '1', '2', '3', '4', '5']);
    }
    for (const name of names) expect(await services[0].inspect(name)).toMatchObject({ locked: false, waiting: 0 });
  });

  it('no drift of timeouts after hundreds of give-ups', async () => {
    const [holder, impatient, dead, alive] = await world.processes(4, { waiterTimeout: ms(WAIT) });
    const lease = await holder.locks.acquire('order', { type: 'fair' });
    for (let round = 0; round < 6; round++) {
      const lock = impatient.locks.getFairLock('order');
      const tries = Array.from({ length: 50 }, (_, n) => lock.tryLock(500 + n));
      expect(new Set(await Promise.all(tries))).toEqual(new Set([null]));
    }
    await until(async () => (await waiting(holder.locks)) === 0);
    const aborted = dead.locks.acquire('order', { type: 'fair' }).catch(() => {});
    await until(async () => (await waiting(holder.locks)) === 1);
    die(dead);
    const served = locked(alive.locks.getFairLock('order'), () => {});
    const died = performance.now();
    await lease.release();
    await served;
    expect(performance.now() - died).toBeLessThan(5 * WAIT);
    dead.backend.heal();
    await dead.locks.close();
    await aborted;
  });

  it('is one lock with the re-entrant lock of its name', async () => {
    const [one, two] = await world.services(2);
    const lease = await one.getFairLock('order').lock();
    expect(await two.getLock('order').tryLock()).toBeNull();
    expect(await one.getLock('order').tryLock()).toBeNull();
    await lease.run(async () => {
      const again = await one.getLock('order').lock();
      await again.run(() => expect(one.getFairLock('order').getHoldCount()).toBe(2));
      await again.release();
    });
    await lease.release();
    expect(await two.getLock('order').isLocked()).toBe(false);
  });
});
