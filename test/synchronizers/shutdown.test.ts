import { ms, openWorld, STORES } from '../support/lock-world.js';
import { until } from '../support/until.js';
import { asleep, watch } from './asleep.js';

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

  it('waits for renewed permits until they are released', async () => {
    const [locks] = await world.services(1, { shutdownTimeout: ms(60_000) });
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await semaphore.trySetPermits(1);
    const id = await semaphore.acquire();
    const closed = locks.close();
    const closing = watch(closed);
    await expect(semaphore.acquire()).rejects.toMatchObject({ name: 'LockAbortedError' });
    expect(closing.done).toBe(false);
    await semaphore.release(id);
    await closed;
  });

  it('leaves no permits taken that were under way', async () => {
    const [ann, bob] = await world.services(2);
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

  it('ends the waits of such a body when its time is over', async () => {
    const [locks] = await world.services(1, { shutdownTimeout: ms(100) });
    const body = locks.withLock('order', async () => {
      void locks.close();
      await locks.getSemaphore('mail').acquire();
    });
    await expect(body).rejects.toMatchObject({ name: 'LockAbortedError' });
  });
});
