import { asleep } from '../../support/asleep.js';
import { openWorld } from '../../support/lock-world.js';
import { woken } from '../../support/time-limits.js';
import { until } from '../../support/until.js';

describe('semaphores and latches while Redis is away', () => {
  const world = openWorld('Redis');
  const unavailable = { name: 'LockUnavailableError' };

  it('fails in time while the server hangs, and releases what it took', async () => {
    const locks = await world.service({ commandTimeout: 500 });
    const [counted, leased] = [locks.getSemaphore('mail'), locks.getPermitExpirableSemaphore('licences')];
    await counted.trySetPermits(1);
    await leased.trySetPermits(1);
    await locks.getCountDownLatch('done').trySetCount(1);
    world.redis.pause();
    try {
      await Promise.all([
        expect(counted.tryAcquire(1, 200)).rejects.toMatchObject(unavailable),
        expect(leased.tryAcquire(200)).rejects.toMatchObject(unavailable),
        expect(counted.tryAcquire()).rejects.toMatchObject(unavailable),
        expect(locks.getCountDownLatch('done').await(200)).rejects.toMatchObject(unavailable),
        expect(counted.availablePermits()).rejects.toMatchObject(unavailable),
      ]);
    } finally {
      world.redis.resume();
    }
    // A server that was stopped may answer its first calls too late.
    const available = () => Promise.all([counted.availablePermits(), leased.availablePermits()]).catch(() => []);
    await until(async () => (await available()).join() === '1,1');
  });

  it('a signal ends the wait while the server hangs', async () => {
    const locks = await world.service({ commandTimeout: 500 });
    world.redis.pause();
    try {
      const wait = { signal: AbortSignal.timeout(100) };
      await expect(locks.getSemaphore('mail').acquire(1, wait)).rejects.toMatchObject({ name: 'LockAbortedError' });
    } finally {
      world.redis.resume();
    }
  });

  it('waits out an outage when there is no waitTime, for acquisitions and releases', async () => {
    const { locks, logger } = await world.process({ commandTimeout: 300 });
    const semaphore = locks.getSemaphore('mail');
    await semaphore.trySetPermits(1);
    await world.redis.kill();
    const work = [semaphore.acquire(2), semaphore.release(2), locks.getCountDownLatch('done').await()];
    await until(() => logger.errors.length > 0);
    expect(logger.errors[0]).toMatch(
      /does not answer .* (waits for|wait, one of them for) the (semaphore 'mail'|latch 'done')\. If /,
    );
    await world.redis.start();
    await Promise.all(work);
  });

  it('a wait survives an outage, in spite of lost messages', async () => {
    const [ann, bob] = await world.services(2);
    const acquired = ann.getSemaphore('mail').acquire();
    await bob.getCountDownLatch('done').trySetCount(1);
    const opened = ann.getCountDownLatch('done').await();
    await asleep(ann, 2);
    await world.redis.restart();
    await bob.getSemaphore('mail').release();
    await woken(Promise.all([acquired, opened]));
  });

  it('a wait survives a broken subscription', async () => {
    const [ann, bob] = await world.services(2);
    const redis = world.redis.client();
    await bob.getCountDownLatch('done').trySetCount(1);
    const acquired = ann.getSemaphore('mail').acquire();
    const opened = ann.getCountDownLatch('done').await();
    await asleep(ann, 2);
    await redis
      .multi()
      .call('CLIENT', 'KILL', 'TYPE', 'pubsub')
      .incr(`${world.keyPrefix}mail`)
      .del(`${world.keyPrefix}done`)
      .exec();
    await woken(Promise.all([acquired, opened]));
  });

  it('a renewed permit is lost when Redis is away for longer than its lease', async () => {
    const { locks } = await world.process({ commandTimeout: 200, watchdogTimeout: 600 as never });
    const lost: unknown[] = [];
    locks.on('lost', (event) => lost.push(event));
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await semaphore.trySetPermits(1);
    const id = await semaphore.acquire();
    world.redis.pause();
    try {
      await until(() => lost.length > 0);
    } finally {
      world.redis.resume();
    }
    expect(lost).toMatchObject([
      { name: 'licences', owner: id, error: expect.objectContaining({ name: 'LockLostError' }) },
    ]);
    await until(async () => (await semaphore.availablePermits().catch(() => 0)) === 1);
  });
});
