import { asleep, isAsleep, watch } from '../support/asleep.js';
import { openWorld, STORES } from '../support/lock-world.js';
import { woken } from '../support/time-limits.js';
import { until } from '../support/until.js';

describe.each(STORES)('a count-down latch in %s', (store) => {
  const world = openWorld(store);

  const latches = async (count: number, steps?: number) => {
    const services = await world.services(count);
    const handles = services.map((locks) => locks.getCountDownLatch('import'));
    if (steps !== undefined) await handles[0].trySetCount(steps);
    return { services, handles };
  };

  it('trySetCount: succeeds once, until the latch is open again', async () => {
    const { handles } = await latches(2);
    expect(await Promise.all([handles[0].trySetCount(1), handles[0].trySetCount(1)])).toEqual([true, false]);
    expect(await handles[1].trySetCount(5)).toBe(false);
    await handles[1].countDown();
    expect(await handles[1].trySetCount(5)).toBe(true);
    expect(await handles[0].getCount()).toBe(5);
  });

  it('await without timeout: waits until the count is zero, in any process', async () => {
    const { services, handles } = await latches(2, 3);
    const opened = handles[1].await();
    const waiting = watch(opened);
    await asleep(services[1]);
    await handles[0].countDown();
    await handles[1].countDown();
    expect(waiting.done).toBe(false);
    await handles[0].countDown();
    expect(await woken(opened)).toBe(true);
  });

  it('await with timeout: gives false when the time is over first', async () => {
    const { services, handles } = await latches(2, 1);
    const start = performance.now();
    expect(await handles[0].await(200)).toBe(false);
    expect(performance.now() - start).toBeGreaterThanOrEqual(195);
    expect(await handles[0].await(0)).toBe(false);
    const opened = handles[0].await('20s');
    await asleep(services[0]);
    await handles[1].countDown();
    expect(await woken(opened)).toBe(true);
  });

  it('await: continues at once when the latch has no count', async () => {
    const { handles } = await latches(1);
    expect(await handles[0].await()).toBe(true);
    expect(await handles[0].await(0)).toBe(true);
  });

  it('several awaiters: all continue, in all processes', async () => {
    const { services, handles } = await latches(3, 1);
    const opened = handles.flatMap((latch) => Array.from({ length: 300 }, () => latch.await()));
    for (const locks of services) await asleep(locks);
    await handles[0].countDown();
    expect((await woken(Promise.all(opened))).every(Boolean)).toBe(true);
  });

  it('delete wakes waiters', async () => {
    const { services, handles } = await latches(2, 3);
    const opened = [handles[0].await(), handles[1].await()];
    for (const locks of services) await asleep(locks);
    expect(await handles[0].delete()).toBe(true);
    expect(await woken(Promise.all(opened))).toEqual([true, true]);
    expect(await handles[1].delete()).toBe(false);
    expect(await handles[1].getCount()).toBe(0);
  });

  it('count: does not go below zero', async () => {
    const { handles } = await latches(2, 200);
    expect(await handles[1].getCount()).toBe(200);
    await Promise.all(Array.from({ length: 150 }, (_, n) => handles[n % 2].countDown()));
    expect(await handles[0].getCount()).toBe(50);
    await Promise.all(Array.from({ length: 60 }, (_, n) => handles[n % 2].countDown()));
    expect(await handles[0].getCount()).toBe(0);
    expect(await handles[0].trySetCount(1)).toBe(true);
  });

  it('continues to wait when a new count is set before it was woken', async () => {
    const { services, handles } = await latches(2, 1);
    const opened = handles[1].await();
    const waiting = watch(opened);
    await asleep(services[1]);
    await Promise.all([handles[0].countDown(), handles[0].trySetCount(1)]);
    await until(() => waiting.done || isAsleep(services[1]));
    await handles[0].countDown();
    expect(await woken(opened)).toBe(true);
  });

  it('a signal ends the wait', async () => {
    const { services, handles } = await latches(1, 1);
    const leave = new AbortController();
    const opened = handles[0].await(undefined, { signal: leave.signal });
    await asleep(services[0]);
    leave.abort('enough');
    await expect(opened).rejects.toMatchObject({ name: 'LockAbortedError', cause: 'enough' });
  });
});
