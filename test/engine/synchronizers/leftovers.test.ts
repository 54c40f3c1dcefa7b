import { asleep } from '../../support/asleep.js';
import { type LockProcess, openWorld, STORES } from '../../support/lock-world.js';
import { woken } from '../../support/time-limits.js';
import { until } from '../../support/until.js';
import { WatchedAbort } from '../../support/watched/watched-signal.js';

describe.each(STORES)('waiters leave nothing behind, in %s', (store) => {
  const world = openWorld(store);

  const leftovers = async ({ backend, runtime }: LockProcess) => ({
    subscriptions: backend.synchronizerRequests.subscriptions,
    timers: runtime.timers,
    channels: store === 'Redis' ? await world.redis.client().pubsub('CHANNELS', '*') : [],
  });
  const nothingIsLeft = async (process: LockProcess) => {
    const nothing = { subscriptions: 0, timers: 0, channels: [] };
    await until(async () => JSON.stringify(await leftovers(process)) === JSON.stringify(nothing), 5_000).catch(
      () => {},
    );
    expect(await leftovers(process)).toEqual(nothing);
  };

  it('when they were served', async () => {
    const process = await world.process();
    const { locks } = process;
    const [counted, leased, latch] = [
      locks.getSemaphore('mail'),
      locks.getPermitExpirableSemaphore('licences'),
      locks.getCountDownLatch('done'),
    ];
    await latch.trySetCount(1);
    const waits = [counted.acquire(), leased.acquire(), latch.await()] as const;
    await asleep(locks, 3);
    await Promise.all([counted.release(), leased.setPermits(1), latch.countDown()]);
    const [, id] = await woken(Promise.all(waits));
    await leased.release(id);
    await nothingIsLeft(process);
  });

  it('when their time was over', async () => {
    const process = await world.process();
    const { locks } = process;
    await locks.getCountDownLatch('done').trySetCount(1);
    const waits = Array.from({ length: 50 }, (_, n) => [
      locks.getSemaphore('mail').tryAcquire(1, 2_000 + n),
      locks.getPermitExpirableSemaphore('licences').tryAcquire(2_000 + n),
      locks.getCountDownLatch('done').await(2_000 + n),
    ]);
    await asleep(locks, 3);
    expect(new Set(await Promise.all(waits.flat()))).toEqual(new Set([false, null]));
    await nothingIsLeft(process);
  });

  it('when they were aborted', async () => {
    const process = await world.process();
    const { locks } = process;
    const leave = new WatchedAbort();
    const { signal } = leave;
    await locks.getCountDownLatch('done').trySetCount(1);
    const waits = [
      locks.getSemaphore('mail').acquire(1, { signal }),
      locks.getPermitExpirableSemaphore('licences').acquire('10s', { signal }),
      locks.getCountDownLatch('done').await('1m', { signal }),
    ];
    await asleep(locks, 3);
    leave.abort();
    for (const wait of waits) await expect(wait).rejects.toMatchObject({ name: 'LockAbortedError' });
    expect(leave.listeners).toBe(0);
    await nothingIsLeft(process);
  });

  it('when they tried once', async () => {
    const process = await world.process();
    const { locks } = process;
    expect(await locks.getSemaphore('mail').tryAcquire()).toBe(false);
    expect(await locks.getPermitExpirableSemaphore('licences').tryAcquire()).toBeNull();
    await nothingIsLeft(process);
  });
});
