import { asleep, watch } from '../support/asleep.js';
import { ms, openVirtualWorld, openWorld, STORES } from '../support/lock-world.js';
import type { VirtualRuntime } from '../support/runtime/virtual-runtime.js';
import { latch } from '../support/section.js';
import { woken } from '../support/time-limits.js';
import { until } from '../support/until.js';
import { answerAfter, answerLost, type Disturbance, refused } from '../support/watched/watched-backend.js';

const FOREIGN_ID = '0123456789abcdef0123456789abcdef';

describe.each(STORES)('a permit-expirable semaphore in %s', (store) => {
  const world = openWorld(store);

  const semaphores = async (count: number, permits?: number) => {
    const services = await world.services(count);
    const handles = services.map((locks) => locks.getPermitExpirableSemaphore('licences'));
    if (permits !== undefined) await handles[0].trySetPermits(permits);
    return { services, handles };
  };

  it('ids: each permit has its own, by which any process can release it', async () => {
    const { handles } = await semaphores(2, 2);
    const ids = [await handles[0].acquire(), await handles[1].acquire('10s')];
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/);
    expect(ids[0]).not.toBe(ids[1]);
    expect(await handles[0].tryAcquire()).toBeNull();
    await handles[1].release(ids[0]);
    await handles[0].release(ids[1].toUpperCase());
    expect(await handles[0].availablePermits()).toBe(2);
  });

  it('blocking acquire: waits until another process releases', async () => {
    const { services, handles } = await semaphores(2, 1);
    const id = await handles[0].acquire();
    const acquired = handles[1].acquire();
    const waiting = watch(acquired);
    await asleep(services[1]);
    expect(waiting.done).toBe(false);
    await handles[0].release(id);
    expect(await woken(acquired)).not.toBe(id);
  });

  it('when a lease ends, the permit is available to a caller that tries afterwards', async () => {
    const { handles } = await semaphores(2, 1);
    await handles[0].acquire(150);
    await until(async () => (await handles[1].tryAcquire()) !== null);
    expect(await handles[1].acquiredPermits()).toBe(1);
  });

  it('when a lease ends, the permit goes to a waiter, without any message', async () => {
    const { handles } = await semaphores(2, 1);
    const start = performance.now();
    await handles[0].acquire(300);
    await handles[1].acquire();
    expect(performance.now() - start).toBeGreaterThanOrEqual(290);
  });

  it('when enough leases have ended, the permits go to a caller that waits for several', async () => {
    const { handles } = await semaphores(2, 2);
    const start = performance.now();
    await handles[0].acquire(150);
    await handles[0].acquire(400);
    expect(await handles[1].acquireMany(2)).toHaveLength(2);
    expect(performance.now() - start).toBeGreaterThanOrEqual(390);
  });

  it('try: waits no longer than waitTime, and gets a permit that becomes available within it', async () => {
    const { services, handles } = await semaphores(2, 1);
    const id = await handles[0].acquire();
    const start = performance.now();
    expect(await handles[1].tryAcquire(200)).toBeNull();
    expect(performance.now() - start).toBeGreaterThanOrEqual(195);
    const acquired = handles[1].tryAcquire('20s', '10s');
    await asleep(services[1]);
    await handles[0].release(id);
    expect(await acquired).toMatch(/^[0-9a-f]{32}$/);
  });

  it('update lease time: shortens or lengthens the lease from now on', async () => {
    const { handles } = await semaphores(2, 2);
    const [short, long] = [await handles[0].acquire('1h'), await handles[0].acquire(1_500)];
    expect(await handles[1].updateLeaseTime(long, '1h')).toBe(true);
    expect(await handles[1].updateLeaseTime(short, 1_500)).toBe(true);
    await until(async () => (await handles[1].acquiredPermits()) === 1);
    expect(await handles[0].tryRelease(short)).toBe(false);
    expect(await handles[0].updateLeaseTime(short, '1h')).toBe(false);
    expect(await handles[0].tryRelease(long)).toBe(true);
  });

  it('release of an expired id fails, and changes nothing', async () => {
    const { handles } = await semaphores(1, 1);
    const id = await handles[0].acquire(100);
    await until(async () => (await handles[0].availablePermits()) === 1);
    await expect(handles[0].release(id)).rejects.toMatchObject({ name: 'LockNotOwnedError', lockName: 'licences' });
    expect(await handles[0].tryRelease(id)).toBe(false);
    expect(await handles[0].availablePermits()).toBe(1);
  });

  it('release of an expired id fails even before anybody noticed the end of its lease', async () => {
    const { handles } = await semaphores(1, 1);
    const id = await handles[0].acquire(100);
    const start = performance.now();
    await until(() => performance.now() - start > 150);
    expect(await handles[0].tryRelease(id)).toBe(false);
    expect(await handles[0].availablePermits()).toBe(1);
  });

  it('release of a foreign id fails, and so does a second release', async () => {
    const { handles } = await semaphores(1, 1);
    await expect(handles[0].release(FOREIGN_ID)).rejects.toThrow(
      `release() of the semaphore 'licences': ${FOREIGN_ID} is not held`,
    );
    const id = await handles[0].acquire();
    await handles[0].release(id);
    await expect(handles[0].release(id)).rejects.toMatchObject({ name: 'LockNotOwnedError' });
    expect(await handles[0].availablePermits()).toBe(1);
  });

  it('many at once: acquires all or none, and releases those that are held', async () => {
    const { handles } = await semaphores(2, 5);
    const ids = await handles[0].acquireMany(3, '10s');
    expect(new Set(ids).size).toBe(3);
    expect(await handles[1].tryAcquireMany(3)).toBeNull();
    expect(await handles[1].tryAcquireMany(2)).toHaveLength(2);
    expect(await handles[1].tryRelease([ids[0], FOREIGN_ID, ids[0]])).toBe(1);
    await expect(handles[0].release([...ids, FOREIGN_ID])).rejects.toThrow(`${ids[0]}, ${FOREIGN_ID} is not held`);
    expect(await handles[0].availablePermits()).toBe(3);
    expect(await handles[0].acquireMany(0)).toEqual([]);
  });

  it('many at once: simultaneous releases of one id release it once', async () => {
    const { handles } = await semaphores(1, 1);
    const id = await handles[0].acquire();
    const released = await Promise.all([1, 2, 3].map(() => handles[0].tryRelease(id)));
    expect(released).toEqual([true, false, false]);
    expect(await handles[0].availablePermits()).toBe(1);
  });

  it('available, acquired and total counts', async () => {
    const { handles } = await semaphores(2);
    const counts = async () => [
      await handles[1].availablePermits(),
      await handles[1].acquiredPermits(),
      await handles[1].getPermits(),
    ];
    expect(await counts()).toEqual([0, 0, 0]);
    expect(await handles[0].trySetPermits(4)).toBe(true);
    expect(await handles[1].trySetPermits(9)).toBe(false);
    const [id] = await handles[0].acquireMany(3);
    expect(await counts()).toEqual([1, 3, 4]);
    await handles[0].release(id);
    expect(await counts()).toEqual([2, 2, 4]);
    await handles[0].setPermits(1);
    expect(await counts()).toEqual([-1, 2, 1]);
    await handles[0].addPermits(3);
    expect(await counts()).toEqual([2, 2, 4]);
    await handles[0].addPermits(-1);
    expect(await counts()).toEqual([1, 2, 3]);
  });

  it('set permits: wakes waiters', async () => {
    const { services, handles } = await semaphores(2);
    const acquired = handles[1].acquire();
    await asleep(services[1]);
    await handles[0].setPermits(1);
    await woken(acquired);
  });

  it('renews a permit that was acquired without a lease time', async () => {
    const [ann, bob] = await world.services(2, { watchdogTimeout: ms(3_000) });
    const [kept, free] = [ann, bob].map((locks) => locks.getPermitExpirableSemaphore('licences'));
    await kept.trySetPermits(1);
    const id = await kept.acquire();
    expect(await free.tryAcquire(4_500)).toBeNull();
    await kept.release(id);
    expect(await free.tryAcquire()).not.toBeNull();
  });

  it('stops renewing a permit whose lease time was updated', async () => {
    const [locks] = await world.services(1, { watchdogTimeout: ms(300) });
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await semaphore.trySetPermits(1);
    const id = await semaphore.acquire();
    await semaphore.updateLeaseTime(id, 400);
    await until(async () => (await semaphore.availablePermits()) === 1);
  });

  it('emits that a renewed permit was lost when somebody else released it', async () => {
    const [ann, bob] = await world.services(2, { watchdogTimeout: ms(3_000) });
    const lost: unknown[] = [];
    ann.on('lost', (event) => lost.push(event));
    await ann.getPermitExpirableSemaphore('licences').trySetPermits(2);
    const ids = await ann.getPermitExpirableSemaphore('licences').acquireMany(2);
    await bob.getPermitExpirableSemaphore('licences').release(ids[1]);
    await until(() => lost.length > 0);
    expect(lost).toMatchObject([
      { name: 'licences', owner: ids[1], error: expect.objectContaining({ name: 'LockLostError' }) },
    ]);
    await ann.getPermitExpirableSemaphore('licences').release(ids[0]);
  });
});

describe('permits that are renewed', () => {
  const world = openVirtualWorld();

  it('are renewed at a third of their lease, all of a semaphore in one command', async () => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(2_000));
    await runtime.until(Promise.all([semaphore.acquireMany(100), semaphore.acquireMany(200)]));
    const watched = backend.synchronizerRequests;
    const before = watched.commands.length;
    await runtime.advance(95_000);
    expect(watched.commands.slice(before)).toEqual(Array.from({ length: 9 }, () => 'renewPermits'));
    expect(await runtime.until(semaphore.acquiredPermits())).toBe(300);
  });

  it('are renewed together when they were acquired at different times', async () => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(10));
    for (let i = 0; i < 5; i++) {
      await runtime.until(semaphore.acquire());
      await runtime.advance(1_500);
    }
    await runtime.advance(90_000);
    expect(backend.synchronizerRequests.count('renewPermits')).toBeLessThanOrEqual(10);
    expect(await runtime.until(semaphore.acquiredPermits())).toBe(5);
  });

  it('are all renewed, also those that one command does not hold, or that were added later', async () => {
    const { locks, runtime } = await world.process();
    const [licences, seats] = ['licences', 'seats'].map((name) => locks.getPermitExpirableSemaphore(name));
    const lost: string[] = [];
    locks.on('lost', ({ owner }) => lost.push(owner));
    await runtime.until(licences.setPermits(2_000));
    await runtime.until(seats.setPermits(2_000));
    await runtime.until(licences.acquireMany(900));
    await runtime.advance(5_000);
    await runtime.until(licences.acquireMany(900));
    await runtime.until(seats.acquireMany(900));
    await runtime.advance(95_000);
    expect(lost).toEqual([]);
    expect(await runtime.until(licences.acquiredPermits())).toBe(1_800);
    expect(await runtime.until(seats.acquiredPermits())).toBe(900);
  });

  it('are asked for once at a time, however late the answer comes', async () => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(1));
    await runtime.until(semaphore.acquire());
    const watched = backend.synchronizerRequests;
    watched.disturb(late(runtime, 15_000), 'renewPermits');
    await runtime.advance(24_000);
    expect(watched.count('renewPermits')).toBe(1);
    await runtime.advance(10_000);
    expect(watched.count('renewPermits')).toBe(2);
  });

  it('leave no timer behind when they are released while their renewal waits to be repeated', async () => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(1));
    const id = await runtime.until(semaphore.acquire());
    backend.synchronizerRequests.disturb(refused, 'renewPermits');
    await runtime.advance(10_100);
    await runtime.until(semaphore.release(id));
    expect(runtime.timers).toBe(0);
  });

  it.each([
    ['are renewed', 0],
    ['cannot be renewed', 10_100],
  ])('leave no timer behind when their service is closed while they %s', async (_, after) => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(1));
    await runtime.until(semaphore.acquire());
    backend.synchronizerRequests.disturb(refused, 'renewPermits');
    await runtime.advance(after);
    await runtime.until(locks.close());
    expect(runtime.timers).toBe(0);
  });

  it('are lost at their deadline when they were granted shortly before it', async () => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(2));
    await runtime.until(semaphore.acquire());
    await runtime.advance(1_000);
    const watched = backend.synchronizerRequests;
    watched.disturb(late(runtime, 29_000), 'takeLeasedPermits');
    const acquiring = semaphore.acquire();
    await runtime.advance(28_500);
    watched.disturb(refused, 'renewPermits');
    const id = await runtime.until(acquiring, 2_000);
    const lost = new Map<string, number>();
    locks.on('lost', ({ owner }) => lost.set(owner, runtime.monotonic()));
    await runtime.advance(20_000);
    expect(lost.get(id)).toBeLessThan(31_500);
  });

  it('emit their renewals, and those that failed', async () => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(2));
    const ids = await runtime.until(semaphore.acquireMany(2));
    const owners: Record<string, string[]> = { renewed: [], renewalFailed: [] };
    const remaining: number[] = [];
    locks.on('renewed', ({ owner }) => owners.renewed?.push(owner));
    locks.on('renewalFailed', ({ name, owner, type, remainingTime, error }) => {
      owners.renewalFailed?.push(owner);
      remaining.push(remainingTime);
      expect([name, type, error]).toEqual(['licences', 'semaphore', expect.any(Error)]);
    });
    const watched = backend.synchronizerRequests;
    watched.disturb(refused, 'renewPermits');
    await runtime.advance(10_500);
    expect(owners).toEqual({ renewed: [], renewalFailed: ids });
    expect(Math.min(...remaining)).toBeGreaterThan(19_000);
    expect(Math.max(...remaining)).toBeLessThanOrEqual(20_000);
    watched.heal();
    await runtime.advance(1_000);
    expect(owners).toEqual({ renewed: ids, renewalFailed: ids });
  });

  it('are lost when no renewal succeeds before their lease ends', async () => {
    const { locks, backend, runtime, logger } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(1));
    const id = await runtime.until(semaphore.acquire());
    const lost: unknown[] = [];
    locks.on('lost', (event) => lost.push(event));
    backend.synchronizerRequests.disturb(refused, 'renewPermits');
    await runtime.advance(29_000);
    expect(lost).toMatchObject([]);
    await runtime.advance(2_000);
    expect(lost).toMatchObject([{ name: 'licences', owner: id, error: expect.any(Error) }]);
    expect(logger.warnings).toHaveLength(1);
  });

  it('count their lease from before the request was sent, however late the answer comes', async () => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(1));
    const lost: number[] = [];
    locks.on('lost', () => lost.push(runtime.monotonic()));
    const watched = backend.synchronizerRequests;
    watched.disturb(late(runtime, 10_000), 'takeLeasedPermits');
    watched.disturb(refused, 'renewPermits');
    await runtime.until(semaphore.acquire());
    expect(runtime.monotonic()).toBe(10_000);
    await runtime.advance(31_000);
    expect(lost).toHaveLength(1);
    expect(lost[0]).toBeGreaterThan(29_000);
    expect(lost[0]).toBeLessThan(31_000);
  });

  it('count their lease from before the renewal was sent, however late the answer comes', async () => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(1));
    const lost: number[] = [];
    locks.on('lost', () => lost.push(runtime.monotonic()));
    await runtime.until(semaphore.acquire());
    const watched = backend.synchronizerRequests;
    watched.disturb(late(runtime, 10_000), 'renewPermits');
    await runtime.advance(10_000);
    expect(watched.count('renewPermits')).toBe(1);
    watched.disturb(refused, 'renewPermits');
    await runtime.advance(31_000);
    // Sent at 10 s, answered at 20 s.
    expect(lost).toHaveLength(1);
    expect(lost[0]).toBeGreaterThan(39_000);
    expect(lost[0]).toBeLessThan(41_000);
  });

  it('are lost at their deadline when a renewal hangs, not at the next timer', async () => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(2));
    await runtime.until(semaphore.acquire());
    await runtime.advance(5_000); // the timer is set by the first permit
    await runtime.until(semaphore.acquire());
    const since = runtime.monotonic();
    const lostAfter: number[] = [];
    locks.on('lost', () => lostAfter.push(runtime.monotonic() - since));
    backend.synchronizerRequests.disturb(() => new Promise(() => {}), 'renewPermits');
    await runtime.advance(40_000);
    expect(lostAfter).toHaveLength(2);
    expect(lostAfter[0]).toBeCloseTo(29_698 - 5_000, -1);
    expect(lostAfter[1]).toBeCloseTo(29_698, -1);
  });

  it.each([
    ['suspended', 25_000],
    ['advanced', 25_000],
    ['set back', -3_600_000],
  ])('are renewed at once when the machine was suspended or its clock set (%s), and not lost', async (_, by) => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(2));
    const lost: unknown[] = [];
    locks.on('lost', (event) => lost.push(event));
    await runtime.until(semaphore.acquireMany(2));
    await runtime.advance(2_500);
    runtime.setWallClock(by);
    await runtime.advance(1_000);
    expect(backend.synchronizerRequests.count('renewPermits')).toBe(1);
    await runtime.advance(60_000);
    expect(lost).toEqual([]);
  });

  it('are reported as lost at once when the machine was suspended for longer than their lease', async () => {
    const { locks, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(1));
    const id = await runtime.until(semaphore.acquire());
    const lost: unknown[] = [];
    locks.on('lost', ({ owner }) => lost.push(owner));
    await runtime.advance(2_500);
    runtime.suspend(40_000);
    await runtime.advance(1_000);
    expect(lost).toEqual([id]);
  });

  it('stay renewed when a new lease time may have been set, and its answer was lost', async () => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(1));
    const id = await runtime.until(semaphore.acquire());
    const lost: unknown[] = [];
    locks.on('lost', (event) => lost.push(event));
    const watched = backend.synchronizerRequests;
    watched.disturb((execute, request) => {
      watched.heal();
      return answerLost(execute, request as never);
    }, 'renewPermits');
    const update = semaphore.updateLeaseTime(id, 1_000);
    await expect(runtime.until(update)).rejects.toMatchObject({ name: 'LockUnavailableError' });
    await runtime.advance(60_000);
    expect(lost).toEqual([]);
    expect(await runtime.until(semaphore.acquiredPermits())).toBe(1);
  });

  it('keep a lease that was set while other permits were renewed in chunks', async () => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(1_000));
    const ids = await runtime.until(semaphore.acquireMany(600));
    const last = ids[599];
    const watched = backend.synchronizerRequests;
    const answered = latch();
    watched.disturb(answerAfter(answered.promise), 'renewPermits');
    await runtime.advance(10_100);
    expect(watched.count('renewPermits')).toBe(1); // for the first 512
    watched.heal();
    expect(await runtime.until(semaphore.updateLeaseTime(last, 2_000))).toBe(true);
    answered.open();
    await runtime.advance(2_100);
    expect(await runtime.until(semaphore.acquiredPermits())).toBe(599);
  });
});

describe('permits with a lease of their own', () => {
  const world = openVirtualWorld();

  it('have the lease that their own caller wants, even when they are asked for together', async () => {
    const { locks, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(3));
    await runtime.until(Promise.all(['5s', '5s', '45s'].map((leaseTime) => semaphore.acquire(leaseTime as '5s'))));
    await runtime.advance(10_000);
    expect(await runtime.until(semaphore.acquiredPermits())).toBe(1);
  });

  it('are not renewed', async () => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(2));
    await runtime.until(semaphore.acquire());
    await runtime.until(semaphore.acquire('45s'));
    await runtime.advance(46_000);
    expect(backend.synchronizerRequests.count('renewPermits')).toBeGreaterThan(2);
    expect(await runtime.until(semaphore.acquiredPermits())).toBe(1);
  });

  it('are not granted when their lease ended before the answer came', async () => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(1));
    const watched = backend.synchronizerRequests;
    watched.disturb(late(runtime, 6_000, 1), 'takeLeasedPermits');
    const id = await runtime.until(semaphore.acquire('5s'));
    expect(await runtime.until(semaphore.acquiredPermits())).toBe(1);
    expect(watched.count('takeLeasedPermits')).toBeGreaterThan(1);
    await runtime.until(semaphore.release(id));
  });
});

describe('permits that may have been taken for a caller that has left', () => {
  const world = openVirtualWorld();

  /** The request of the caller was executed, but got no answer. */
  const afterLostAnswer = async () => {
    const process = await world.process();
    const { locks, backend, runtime } = process;
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(1));
    const watched = backend.synchronizerRequests;
    watched.disturb(answerLost, 'takeLeasedPermits');
    await expect(runtime.until(semaphore.tryAcquire(0))).rejects.toMatchObject({ name: 'LockUnavailableError' });
    watched.heal();
    return { ...process, semaphore };
  };

  it('come back a second later', async () => {
    const { runtime, semaphore } = await afterLostAnswer();
    expect(await runtime.until(semaphore.availablePermits())).toBe(0);
    await runtime.advance(1_100);
    expect(await runtime.until(semaphore.availablePermits())).toBe(1);
  });

  it('go to the next caller at once', async () => {
    const { runtime, semaphore } = await afterLostAnswer();
    const id = await runtime.until(semaphore.acquire());
    expect(runtime.monotonic()).toBeLessThan(100);
    await runtime.until(semaphore.release(id));
  });

  it('leave no timer behind when the service is closed', async () => {
    const { locks, runtime } = await afterLostAnswer();
    await runtime.until(locks.close());
    expect(runtime.timers).toBe(0);
  });
});

describe('a permit that is granted after an answer that came too late', () => {
  const world = openVirtualWorld();

  it('is another one than that which is given back', async () => {
    const { locks, backend, runtime } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    await runtime.until(semaphore.setPermits(1));
    const pass = (time: number) => new Promise<void>((resolve) => runtime.timer(time, resolve));
    const watched = backend.synchronizerRequests;
    const granted = latch();
    let attempts = 0;
    watched.disturb(async (execute, request) => {
      attempts++;
      if (attempts === 1) return answerLost(execute, request);
      if (attempts > 2) return execute();
      await pass(4_000);
      const reply = await execute();
      await pass(1_500);
      return reply;
    }, 'takeLeasedPermits');
    watched.disturb(async (execute) => {
      await granted.promise;
      return execute();
    }, 'giveLeasedPermits');
    const id = await runtime.until(semaphore.acquire('5s'));
    granted.open();
    await runtime.advance(100);
    expect(attempts).toBeGreaterThan(2);
    watched.heal();
    await runtime.until(semaphore.release(id)); // fails if it is not held
    expect(await runtime.until(semaphore.availablePermits())).toBe(1);
  });
});

/** Executes the first `count` commands at once, and delays their answers. */
function late(runtime: VirtualRuntime, delay: number, count = Number.POSITIVE_INFINITY): Disturbance {
  let answers = 0;
  return async (execute) => {
    const reply = await execute();
    if (++answers <= count) await new Promise<void>((resolve) => runtime.timer(delay, resolve));
    return reply;
  };
}
