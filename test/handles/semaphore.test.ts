import { asleep, watch } from '../support/asleep.js';
import { ms, openWorld, STORES } from '../support/lock-world.js';
import { woken } from '../support/time-limits.js';

describe.each(STORES)('a semaphore in %s', (store) => {
  const world = openWorld(store);

  const semaphores = async (count: number, permits?: number) => {
    const services = await world.services(count);
    const handles = services.map((locks) => locks.getSemaphore('mail'));
    if (permits !== undefined) await handles[0].trySetPermits(permits);
    return { services, handles };
  };

  it('blocking acquire: waits until another process releases', async () => {
    const { services, handles } = await semaphores(2, 1);
    const [ann, bob] = handles;
    await ann.acquire();
    const acquired = bob.acquire();
    const waiting = watch(acquired);
    await asleep(services[1]);
    expect(waiting.done).toBe(false);
    await ann.release();
    await woken(acquired);
    expect(await ann.availablePermits()).toBe(0);
  });

  it('blocking acquire: waits until a caller of the same process releases', async () => {
    const { services, handles } = await semaphores(1, 1);
    await handles[0].acquire();
    const acquired = handles[0].acquire();
    await asleep(services[0]);
    await handles[0].release();
    await woken(acquired);
  });

  it('n permits: acquires all of them or none', async () => {
    const { services, handles } = await semaphores(2, 5);
    const [ann, bob] = handles;
    await ann.acquire(3);
    const acquired = bob.acquire(4);
    const waiting = watch(acquired);
    await asleep(services[1]);
    expect(await ann.availablePermits()).toBe(2);
    await ann.release();
    await asleep(services[1]);
    expect(waiting.done).toBe(false);
    await ann.release(2);
    await woken(acquired);
    expect(await bob.availablePermits()).toBe(1);
  });

  it('try n: says whether there were enough, and acquires none if not', async () => {
    const { handles } = await semaphores(2, 3);
    const [ann, bob] = handles;
    expect(await ann.tryAcquire(2)).toBe(true);
    expect(await bob.tryAcquire(2)).toBe(false);
    expect(await bob.tryAcquire()).toBe(true);
    expect(await bob.tryAcquire()).toBe(false);
    expect(await ann.availablePermits()).toBe(0);
  });

  it('try n: waits no longer than waitTime', async () => {
    const { handles } = await semaphores(1, 1);
    const start = performance.now();
    expect(await handles[0].tryAcquire(2, 600)).toBe(false);
    expect(performance.now() - start).toBeGreaterThanOrEqual(595);
    expect(await handles[0].availablePermits()).toBe(1);
  });

  it('try n: succeeds when permits become available in time', async () => {
    const { services, handles } = await semaphores(2, 0);
    const acquired = handles[0].tryAcquire(2, '20s');
    await asleep(services[0]);
    await handles[1].release(2);
    expect(await acquired).toBe(true);
  });

  it('a single try gets what is available, even while others wait for more', async () => {
    const { services, handles } = await semaphores(1, 1);
    const acquired = handles[0].acquire(2);
    await asleep(services[0]);
    expect(await handles[0].tryAcquire()).toBe(true);
    await handles[0].release(2);
    await woken(acquired);
  });

  it('single tries of one process do not fail each other', async () => {
    const { handles } = await semaphores(1, 10);
    const tries = [9, 2, 1, 9, 1].map((permits) => handles[0].tryAcquire(permits));
    expect(await Promise.all(tries)).toEqual([true, false, true, false, false]);
  });

  it('serves a waiting caller among callers that try again and again', async () => {
    const { handles } = await semaphores(1, 1);
    let served = false;
    // In memory, endless tries would never let the event loop run anything else, not even the time limit of Jest.
    const trying = [2, 3, 4].map(async (permits) => {
      for (let tries = 0; !served && tries < 1_000; tries++) await handles[0].tryAcquire(permits);
      return served;
    });
    await handles[0].acquire();
    served = true;
    expect(await Promise.all(trying)).toEqual([true, true, true]);
  });

  it('drain: takes all available permits, once', async () => {
    const { handles } = await semaphores(2, 7);
    await handles[0].acquire(2);
    expect(await handles[1].drainPermits()).toBe(5);
    expect(await handles[0].drainPermits()).toBe(0);
    expect(await handles[0].availablePermits()).toBe(0);
    await handles[0].addPermits(-3);
    expect(await handles[0].drainPermits()).toBe(0);
    expect(await handles[0].availablePermits()).toBe(-3);
  });

  it('release without permits: adds to a semaphore that was never set, or never acquired', async () => {
    const { handles } = await semaphores(1);
    await handles[0].release();
    await handles[0].release(2);
    expect(await handles[0].availablePermits()).toBe(3);
    expect(await handles[0].tryAcquire(3)).toBe(true);
  });

  it('add and reduce: below zero waits', async () => {
    const { services, handles } = await semaphores(2, 2);
    const [ann, bob] = handles;
    await ann.acquire(2);
    await ann.addPermits(-3);
    expect(await ann.availablePermits()).toBe(-3);
    const acquired = bob.acquire();
    const waiting = watch(acquired);
    await ann.release(2);
    await asleep(services[1]);
    expect(waiting.done).toBe(false);
    expect(await ann.availablePermits()).toBe(-1);
    await ann.addPermits(2);
    await woken(acquired);
    expect(await ann.availablePermits()).toBe(0);
  });

  it('trySetPermits: succeeds once, and wakes waiters', async () => {
    const { services, handles } = await semaphores(2);
    const acquired = handles[1].acquire(2);
    await asleep(services[1]);
    const set = await Promise.all([3, 3].map((permits) => handles[0].trySetPermits(permits)));
    expect(set).toEqual([true, false]);
    await woken(acquired);
    expect(await handles[1].trySetPermits(9)).toBe(false);
    expect(await handles[0].availablePermits()).toBe(1);
  });

  it('changes of several kinds that are requested together are made in their order', async () => {
    const { handles } = await semaphores(1, 0);
    const [semaphore] = handles;
    const [, , drained] = await Promise.all([
      semaphore.release(1),
      semaphore.release(2),
      semaphore.drainPermits(),
      semaphore.release(4),
    ]);
    expect(drained).toBe(3);
    expect(await semaphore.availablePermits()).toBe(4);
    const drains = await Promise.all([semaphore.release(1), semaphore.drainPermits(), semaphore.drainPermits()]);
    expect(drains.slice(1)).toEqual([5, 0]);
  });

  it('releaseIfExists: adds nothing to a semaphore that was never set', async () => {
    const { handles } = await semaphores(1);
    expect(await handles[0].releaseIfExists()).toBe(false);
    expect(await handles[0].trySetPermits(1)).toBe(true);
    expect(await handles[0].releaseIfExists(2)).toBe(true);
    expect(await handles[0].availablePermits()).toBe(3);
  });

  it('0 permits: waits for nothing, and changes nothing', async () => {
    const { handles } = await semaphores(1);
    await handles[0].acquire(0);
    expect(await handles[0].tryAcquire(0)).toBe(true);
    await handles[0].release(0);
    expect(await handles[0].trySetPermits(1)).toBe(true);
  });

  it('serves the callers of one process in the order of their calls', async () => {
    const { services, handles } = await semaphores(2, 0);
    const order: number[] = [];
    const served = Array.from({ length: 200 }, (_, n) => handles[0].acquire((n % 3) + 1).then(() => order.push(n)));
    await asleep(services[0]);
    for (let given = 0; given < 400; given += 40) await handles[1].release(40);
    await woken(Promise.all(served));
    expect(order).toEqual(Array.from({ length: 200 }, (_, n) => n));
    expect(await handles[0].availablePermits()).toBe(400 - 199 - 200);
  });

  it('serves the next caller when the first one, which wanted more, leaves', async () => {
    const { services, handles } = await semaphores(1, 1);
    const leave = new AbortController();
    const first = handles[0].acquire(2, { signal: leave.signal });
    const second = handles[0].acquire(1);
    await asleep(services[0]);
    leave.abort('enough');
    await expect(first).rejects.toMatchObject({ name: 'LockAbortedError', cause: 'enough' });
    await woken(second);
  });

  it('takes nothing for a caller that left while its request was under way', async () => {
    const { handles } = await semaphores(1, 1);
    const leave = new AbortController();
    const acquired = handles[0].acquire(1, { signal: leave.signal });
    leave.abort();
    await expect(acquired).rejects.toMatchObject({ name: 'LockAbortedError' });
    expect(await handles[0].tryAcquire(1, '20s')).toBe(true);
  });

  it('does not start to wait with a signal that was aborted before', async () => {
    const { handles } = await semaphores(1, 1);
    await expect(handles[0].acquire(1, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: 'LockAbortedError',
    });
    expect(await handles[0].availablePermits()).toBe(1);
  });

  it("fails with LockBusyError when the service's waitTime is over", async () => {
    const locks = await world.service({ waitTime: ms(400) });
    await locks.getSemaphore('mail').availablePermits(); // waits until it is connected
    await expect(locks.getSemaphore('mail').acquire()).rejects.toMatchObject({
      name: 'LockBusyError',
      lockName: 'mail',
      message: "A permit of the semaphore 'mail' was not available within 400 ms",
    });
  });
});
