import { LockAbortedError, LockUnavailableError } from '../../lib/engine/errors.js';
import { leftovers, NOTHING, nothingIsLeft, openVirtualWorld, openWorld, STORES } from '../support/lock-world.js';
import { errorOf, latch, Section } from '../support/section.js';
import { until } from '../support/until.js';
import { refused } from '../support/watched/watched-backend.js';
import { locked } from './locked.js';

describe.each(STORES)('the spin lock, on %s', (store) => {
  const world = openWorld(store);

  it('serves contenders of several instances one at a time, without a subscription', async () => {
    const processes = await world.processes(3);
    const section = new Section();
    await Promise.all(
      Array.from({ length: 24 }, (_, n) =>
        locked(processes[n % 3].locks.getSpinLock('order'), () => section.pass(`${n}`, 2)),
      ),
    );
    expect(section.most).toBe(1);
    expect(new Set(section.entries).size).toBe(24);
    for (const process of processes) {
      expect(process.backend.subscribed).toBe(0);
      await nothingIsLeft(process);
    }
  });

  it('is one lock with the re-entrant lock of its name', async () => {
    const [one, two] = await world.services(2);
    await locked(one.getLock('order'), async () => {
      expect(await two.getSpinLock('order').tryLock(500)).toBeNull();
    });
    await locked(two.getSpinLock('order'), (lease) =>
      lease.run(() =>
        locked(two.getLock('order'), (again) =>
          again.run(async () => {
            expect(two.getSpinLock('order').getHoldCount()).toBe(2);
            expect(await one.getLock('order').tryLock()).toBeNull();
          }),
        ),
      ),
    );
    expect(await one.isLocked('order')).toBe(false);
  });

  it('lets branches of one Promise.all in one after the other', async () => {
    const locks = await world.service();
    const section = new Section();
    await Promise.all(['a', 'b', 'c'].map((who) => locked(locks.getSpinLock('order'), () => section.pass(who, 5))));
    expect(section.most).toBe(1);
    expect(section.entries).toHaveLength(3);
  });

  it('waits no longer than its waitTime, and leaves nothing', async () => {
    const [holder, waiter] = await world.processes(2);
    const lease = await holder.locks.acquire('order');
    const since = performance.now();
    expect(await waiter.locks.getSpinLock('order').tryLock(500)).toBeNull();
    expect(performance.now() - since).toBeGreaterThanOrEqual(495);
    await nothingIsLeft(waiter);
    await lease.release();
  });

  it('waits out an outage, or for its waitTime', async () => {
    const { locks, backend } = await world.process();
    backend.disturb(refused, 'acquire');
    const lock = locks.getSpinLock('order');
    expect(await errorOf(lock.tryLock())).toBeInstanceOf(LockUnavailableError);
    expect(await errorOf(lock.tryLock(50))).toBeInstanceOf(LockUnavailableError);
    const waiting = locked(lock, () => {});
    await until(() => backend.count('acquire') > 10);
    backend.heal();
    await waiting;
  });

  it('answers in time when the backend does not', async () => {
    const { locks, backend } = await world.process();
    const silence = latch();
    backend.disturb((execute, request) => silence.promise.then(() => refused(execute, request)), 'acquire');
    const error = await errorOf(locks.getSpinLock('order').tryLock(50));
    silence.open();
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toMatch(/within 50 ms/);
  });

  it('stops spinning when the service shuts down', async () => {
    const [holder, waiter] = await world.processes(2);
    const lease = await holder.locks.acquire('order');
    const waiting = errorOf(waiter.locks.getSpinLock('order').lock());
    await until(() => waiter.backend.count('acquire') > 2);
    await waiter.locks.close();
    expect(await waiting).toBeInstanceOf(LockAbortedError);
    await lease.release();
  });
});

describe('the back-off of the spin lock', () => {
  const world = openVirtualWorld();

  it('grows from 1 to 128 ms', async () => {
    const [holder, waiter] = [await world.process(), await world.process()];
    const { runtime } = world;
    await runtime.until(holder.locks.acquire('order'));
    const waiting = waiter.locks.getSpinLock('order').tryLock(2_000);
    const tries: number[] = [];
    for (let time = 0; time < 2_000; time++) {
      if (waiter.backend.count('acquire') > tries.length) tries.push(time);
      await runtime.advance(1);
    }
    expect(await waiting).toBeNull();
    const pauses = tries.map((time, n) => time - (tries[n - 1] ?? 0));
    expect(pauses.slice(1, 5).reduce((sum, pause) => sum + pause)).toBeLessThanOrEqual(1 + 2 + 4 + 8 + 4);
    for (const pause of pauses.slice(9)) {
      expect(pause).toBeGreaterThanOrEqual(63);
      expect(pause).toBeLessThanOrEqual(129);
    }
    expect(leftovers(waiter)).toEqual(NOTHING); // apart from the heartbeat of the holder
  });
});
