import { setTimeout as sleep } from 'node:timers/promises';
import { asleep, watch } from '../../support/asleep.js';
import { ms, openVirtualWorld, openWorld, STORES } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { woken } from '../../support/time-limits.js';
import { until } from '../../support/until.js';
import { answerAfter, refused } from '../../support/watched/watched-backend.js';

describe.each(STORES)('shutdown with semaphores and latches in %s', (store) => {
  const world = openWorld(store);

  it('ends the waits of all callers', async () => {
    const [ann, bob] = await world.services(2);
    await bob.getCountDownLatch('done').trySetCount(1);
    const waits = [
      ann.getSemaphore('mail').acquire(),
      ann.getSemaphore('mail').tryAcquire(1, '1m'),
      ann.getPermitExpirableSemaphore('licences').acquire(),
      ann.getCountDownLatch('done').await(),
    ];
    await asleep(ann, 3);
    const closed = ann.close();
    for (const wait of waits) await expect(wait).rejects.toMatchObject({ name: 'LockAbortedError' });
    await closed;
    await expect(ann.getSemaphore('mail').acquire()).rejects.toMatchObject({ name: 'LockAbortedError' });
    await expect(ann.getSemaphore('mail').release()).rejects.toMatchObject({ name: 'LockUnavailableError' });
  });

  it('stops renewing permits and leaves them to their leases: their holders may still be at work', async () => {
    const ann = await world.process({ watchdogTimeout: ms(2_000) });
    const [bob] = await world.services(1);
    const semaphore = ann.locks.getPermitExpirableSemaphore('licences');
    await semaphore.trySetPermits(3);
    await semaphore.acquireMany(2);
    const id = await semaphore.acquire('1h');
    await ann.locks.close();
    expect(ann.logger.warnings).toEqual([expect.stringContaining('2 permits of')]);
    expect(await bob.getPermitExpirableSemaphore('licences').availablePermits()).toBe(0);
    await until(async () => (await bob.getPermitExpirableSemaphore('licences').availablePermits()) === 2);
    expect(await bob.getPermitExpirableSemaphore('licences').tryRelease(id)).toBe(true);
  });

  it('waits for renewed permits until they are released, and serves those who wait for them', async () => {
    const [locks] = await world.services(1, { shutdownTimeout: ms(60_000) });
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await semaphore.trySetPermits(1);
    const id = await semaphore.acquire();
    const closed = locks.close();
    const closing = watch(closed);
    const next = semaphore.acquire();
    await asleep(locks);
    expect(closing.done).toBe(false);
    await semaphore.release(id);
    await semaphore.release(await next);
    await closed;
  });

  it('leaves no permits taken that were under way', async () => {
    const [ann, bob] = await world.services(2, { shutdownTimeout: ms(0) });
    await bob.getSemaphore('mail').trySetPermits(5);
    await bob.getPermitExpirableSemaphore('licences').trySetPermits(5);
    const acquired = [
      ann.getSemaphore('mail').acquire(2),
      ann.getSemaphore('mail').acquire(2),
      ann.getPermitExpirableSemaphore('licences').acquire('1h'),
    ];
    const closed = ann.close();
    for (const wait of acquired) await expect(wait).rejects.toMatchObject({ name: 'LockAbortedError' });
    await closed;
    expect(await bob.getSemaphore('mail').availablePermits()).toBe(5);
    expect(await bob.getPermitExpirableSemaphore('licences').availablePermits()).toBe(5);
  });

  it('lets a body that holds a lock continue to wait for a permit', async () => {
    const [ann, bob] = await world.services(2, { shutdownTimeout: ms(60_000) });
    const theirs = bob.getSemaphore('mail');
    await theirs.trySetPermits(1);
    await theirs.acquire();
    const body = ann.withLock('order', () => ann.getSemaphore('mail').acquire());
    await asleep(ann);
    const closed = ann.close();
    await theirs.release();
    await woken(body);
    await closed;
  });

  it('refuses a caller that tries once when its time is over, and waits for the answer, in order to give back what it brings', async () => {
    const [ann, bob] = await world.processes(2, { shutdownTimeout: ms(100) });
    const theirs = bob.locks.getSemaphore('mail');
    await theirs.trySetPermits(1);
    const answer = latch();
    ann.backend.synchronizerRequests.disturb(answerAfter(answer.promise), 'takePermits');
    const tried = errorOf(ann.locks.getSemaphore('mail').tryAcquire());
    await until(async () => (await theirs.availablePermits()) === 0);
    const closed = ann.locks.close();
    const closing = watch(closed);
    expect(await tried).toMatchObject({ name: 'LockAbortedError' });
    expect(closing.done).toBe(false);
    answer.open();
    await closed;
    await until(async () => (await theirs.availablePermits()) === 1);
  });

  it('waits for a release that is under way', async () => {
    const { locks, backend } = await world.process({ shutdownTimeout: ms(60_000) });
    const answer = latch();
    backend.synchronizerRequests.disturb(answerAfter(answer.promise), 'addPermits');
    const released = locks.getSemaphore('mail').release();
    const closed = locks.close();
    const closing = watch(closed);
    await sleep(50);
    expect(closing.done).toBe(false);
    answer.open();
    await released;
    await closed;
  });

  it('lets a body that holds a lock acquire and release the permits that it needs to end', async () => {
    const [locks] = await world.services(1, { shutdownTimeout: ms(20_000) });
    await locks.getSemaphore('mail').trySetPermits(1);
    let closed: Promise<void> | undefined;
    await locks.withLock('order', async () => {
      closed = locks.close();
      await locks.getSemaphore('mail').acquire();
      await locks.getSemaphore('mail').release();
    });
    await closed;
  });

  it('ends a try of such a body when its time is over, and waits for the answer', async () => {
    const [ann, bob] = await world.processes(2, { shutdownTimeout: ms(100) });
    const theirs = bob.locks.getSemaphore('mail');
    await theirs.trySetPermits(1);
    const answer = latch();
    ann.backend.synchronizerRequests.disturb(answerAfter(answer.promise), 'takePermits');
    const body = errorOf(ann.locks.withLock('order', () => ann.locks.getSemaphore('mail').tryAcquire()));
    await until(async () => (await theirs.availablePermits()) === 0);
    const closed = ann.locks.close();
    const closing = watch(closed);
    expect(await body).toMatchObject({ name: 'LockAbortedError' });
    await sleep(50);
    expect(closing.done).toBe(false);
    answer.open();
    await closed;
    expect(await theirs.availablePermits()).toBe(1);
  });

  it('ends the waits of such a body when its time is over', async () => {
    const [locks] = await world.services(1, { shutdownTimeout: ms(100) });
    const body = locks.withLock('order', async () => {
      void locks.close();
      await locks.getSemaphore('mail').acquire();
    });
    await expect(body).rejects.toMatchObject({ name: 'LockAbortedError' });
  });
});

describe('shutdown during an outage', () => {
  const world = openVirtualWorld();

  it('gives up releases of permits that were to be repeated, and leaves no timer that keeps the process alive', async () => {
    const { locks, backend, runtime } = await world.process({ commandTimeout: 200 });
    backend.synchronizerRequests.disturb(refused, 'addPermits');
    const attempts = () => backend.synchronizerRequests.count('addPermits');
    const released = errorOf(locks.getSemaphore('mail').release());
    await runtime.advance(5_000); // from now on, at least half a second passes between two attempts
    for (const before = attempts(); attempts() === before; ) await runtime.advance(10);
    await runtime.until(locks.close());
    expect(await released).toMatchObject({ name: 'LockUnavailableError' });
    expect(runtime.keepAliveTimers).toBe(0);
  });
});
