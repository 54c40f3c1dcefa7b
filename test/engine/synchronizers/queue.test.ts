import { LockAbortedError, LockUnavailableError } from '../../../lib/engine/errors.js';
import { leftovers, ms, NOTHING, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf } from '../../support/section.js';
import { answerLost, refused } from '../../support/watched/watched-backend.js';

describe('callers that wait for permits', () => {
  const world = openVirtualWorld();

  it('ask a backend that answers only every second request less and less often', async () => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getSemaphore('mail');
    const watched = backend.synchronizerRequests;
    let requests = 0;
    watched.disturb(
      (execute, request) => (++requests % 2 === 1 ? answerLost(execute, request) : execute()),
      'takePermits',
    );
    const acquired = semaphore.acquire();
    await runtime.advance(20_000);
    expect(requests).toBeGreaterThan(10);
    expect(requests).toBeLessThan(100);
    watched.heal();
    await runtime.until(semaphore.release());
    await runtime.until(acquired);
  });

  it('ask no more for a caller that has left, when its request did not reach the backend', async () => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getSemaphore('mail');
    const watched = backend.synchronizerRequests;
    watched.disturb(refused, 'takePermits');
    expect(await errorOf(semaphore.tryAcquire())).toBeInstanceOf(LockUnavailableError);
    expect(await errorOf(runtime.until(semaphore.tryAcquire(1, 200)))).toBeInstanceOf(LockUnavailableError);
    watched.heal();
    const before = watched.count('takePermits');
    await runtime.advance(10_000);
    expect(watched.count('takePermits')).toBe(before);
    expect(runtime.timers).toBe(0);
  });

  it('have the backend pinged, so that an outage is noticed while nobody asks', async () => {
    const { locks, backend, runtime } = await world.process();
    const acquired = locks.getSemaphore('mail').acquire();
    await runtime.advance(10_000);
    expect(backend.count('ping')).toBe(3);
    await runtime.until(locks.getSemaphore('mail').trySetPermits(1));
    await runtime.until(acquired);
    await runtime.advance(10_000);
    expect(backend.count('ping')).toBe(3);
  });

  it('share one request with those that came while the backend did not answer', async () => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getSemaphore('mail');
    await runtime.until(semaphore.trySetPermits(10));
    const watched = backend.synchronizerRequests;
    watched.disturb(refused, 'takePermits');
    const acquired = [semaphore.acquire()];
    await runtime.settle();
    acquired.push(semaphore.acquire(), semaphore.acquire());
    watched.heal();
    const before = watched.count('takePermits');
    await runtime.until(Promise.all(acquired));
    expect(watched.count('takePermits')).toBe(before + 1);
  });

  it.each(['getSemaphore', 'getPermitExpirableSemaphore'] as const)('share a request with others: %s', async (kind) => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks[kind]('mail', { permits: 100 });
    await runtime.until<unknown>(semaphore.acquire());
    await runtime.until(Promise.all(Array.from({ length: 90 }, () => semaphore.acquire())));
    expect(await runtime.until(semaphore.availablePermits())).toBe(9);
    const { commands } = backend.synchronizerRequests;
    // The first of the 90 asks alone, and the next 64 together.
    expect(commands.filter((command) => command.startsWith('take'))).toHaveLength(1 + 3);
  });

  it('create a missing semaphore', async () => {
    const { locks, runtime } = await world.process();
    await runtime.until(locks.getSemaphore('mail', { permits: 2 }).acquire());
    expect(await runtime.until(locks.getSemaphore('mail').availablePermits())).toBe(1);
  });

  it('leave nothing behind, whether they were served or not', async () => {
    const process = await world.process();
    const { locks, runtime } = process;
    const [counted, leased] = [locks.getSemaphore('mail'), locks.getPermitExpirableSemaphore('licences')];
    for (let round = 0; round < 3; round++) {
      const acquired = [counted.acquire(), leased.acquire('1m')] as const;
      expect(await runtime.until(counted.tryAcquire(5, 100))).toBe(false);
      await runtime.until(Promise.all([counted.release(), leased.setPermits(1)]));
      const [, id] = await runtime.until(Promise.all(acquired));
      await runtime.until(leased.release(id));
      await runtime.until(leased.setPermits(0));
    }
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('are refused when the service is closed', async () => {
    const { locks, runtime } = await world.process();
    const waits = [locks.getSemaphore('mail').acquire(), locks.getPermitExpirableSemaphore('licences').acquire()];
    const errors = Promise.all(waits.map(errorOf));
    await runtime.advance(100);
    await runtime.until(locks.close());
    expect(await errors).toEqual(waits.map(() => expect.any(LockAbortedError)));
  });

  it('get as many permits as they asked for, up to 1,000 with ids', async () => {
    const { locks, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences', { permits: 1_500 });
    expect(new Set(await runtime.until(semaphore.acquireMany(1_000, '1m'))).size).toBe(1_000);
    expect(await errorOf(semaphore.acquireMany(1_001, '1m'))).toMatchObject({ name: 'LockConfigurationError' });
    expect(await runtime.until(semaphore.availablePermits())).toBe(500);
  });
});

describe('callers that wait for a latch', () => {
  const world = openVirtualWorld();

  it('continue when its count reaches zero, and not before', async () => {
    const { locks, runtime } = await world.process();
    const latch = locks.getCountDownLatch('done');
    await runtime.until(latch.trySetCount(2));
    let open = false;
    const opened = latch.await().then(() => {
      open = true;
    });
    for (const left of [2, 1]) {
      expect(await runtime.until(latch.await(1_000))).toBe(false);
      expect([await runtime.until(latch.getCount()), open]).toEqual([left, false]);
      await runtime.until(latch.countDown());
    }
    await runtime.until(opened);
  });

  it('are not asked for any more when they have left, even if the last answer was lost', async () => {
    const { locks, backend, runtime } = await world.process();
    const watched = backend.synchronizerRequests;
    watched.disturb(answerLost, 'getCount');
    const leaving = errorOf(runtime.until(locks.getCountDownLatch('done').await(2_000)));
    expect(await leaving).toBeInstanceOf(LockUnavailableError);
    watched.heal();
    const before = watched.count('getCount');
    await runtime.advance(10_000);
    expect(watched.count('getCount')).toBe(before);
    expect(runtime.timers).toBe(0);
  });
});

describe('permits that a process renews', () => {
  const world = openVirtualWorld();

  it('are counted', async () => {
    const { locks, runtime } = await world.process();
    const [mail, sms] = ['mail', 'sms'].map((name) => locks.getPermitExpirableSemaphore(name, { permits: 10 }));
    await runtime.until(mail.acquireMany(3));
    await runtime.until(sms.acquireMany(2));
    const [id] = await runtime.until(sms.acquireMany(4));
    await runtime.until(sms.acquire('1m')); // is not renewed
    expect(locks.engine.activity().renewedPermits).toBe(9);
    await runtime.until(sms.release(id));
    expect(locks.engine.activity().renewedPermits).toBe(8);
  });

  it('are no longer counted, nor renewed, when the service was closed', async () => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences', { permits: 10 });
    await runtime.until(semaphore.acquireMany(3));
    await runtime.until(locks.close());
    expect(locks.engine.activity().renewedPermits).toBe(0);
    await runtime.advance(60_000);
    expect(backend.synchronizerRequests.count('renewPermits')).toBe(0);
  });

  it('have the lease of the watchdog, so that they come back when their process has died', async () => {
    const [died, other] = [await world.process({ watchdogTimeout: ms(8_000) }), await world.process()];
    const { runtime } = other;
    const semaphore = other.locks.getPermitExpirableSemaphore('licences', { permits: 1 });
    await runtime.until(died.locks.getPermitExpirableSemaphore('licences', { permits: 1 }).acquire());
    died.backend.synchronizerRequests.disturb(refused, 'renewPermits');
    await runtime.advance(7_000);
    expect(await runtime.until(semaphore.availablePermits())).toBe(0);
    await runtime.advance(1_100);
    expect(await runtime.until(semaphore.availablePermits())).toBe(1);
  });

  it('have only the lease that was set for them later', async () => {
    const { locks, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences', { permits: 2 });
    const [short] = await runtime.until(semaphore.acquireMany(2));
    expect(await runtime.until(semaphore.updateLeaseTime(short, '2m'))).toBe(true);
    expect(locks.engine.activity().renewedPermits).toBe(1);
    await runtime.advance(119_000);
    expect(await runtime.until(semaphore.availablePermits())).toBe(0);
    await runtime.advance(2_000);
    expect(await runtime.until(semaphore.availablePermits())).toBe(1);
  });
});
