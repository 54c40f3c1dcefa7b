import { LockLostError, LockUnavailableError } from '../../../lib/engine/errors.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { leftovers, ms, NOTHING, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, answerLost, refused } from '../../support/watched/watched-backend.js';

/** What certainly remains of a lease of 30 s: 1 % and 2 ms are subtracted for clock drift. */
const VALID = 29_698;

describe('the watchdog', () => {
  const world = openVirtualWorld();

  it('keeps a lock for a body that takes three times its lease', async () => {
    const { locks, backend, runtime } = await world.process({ watchdogTimeout: ms(300) });
    const other = await world.process();
    const body = latch();
    const done = locks.withLock('order', () => body.promise);
    await runtime.settle();
    for (let time = 0; time < 900; time += 10) {
      await runtime.advance(10);
      expect(await other.locks.tryAcquire('order')).toBeNull();
    }
    expect(backend.count('renew')).toBeGreaterThanOrEqual(8);
    expect(backend.count('renew')).toBeLessThanOrEqual(10);
    body.open();
    await runtime.until(done);
    expect(await other.locks.isLocked('order')).toBe(false);
  });

  it('renews three times per lease, and not more often', async () => {
    const { locks, backend, runtime } = await world.process();
    const lease = await locks.acquire('order');
    await runtime.advance(300_000);
    expect(lease.held).toBe(true);
    expect(backend.count('renew')).toBeGreaterThanOrEqual(29);
    expect(backend.count('renew')).toBeLessThanOrEqual(32);
    await lease.release();
  });

  it('does not spin on the shortest lease', async () => {
    const { locks, backend, runtime } = await world.process({ watchdogTimeout: ms(100) });
    const lease = await locks.acquire('order');
    await runtime.advance(10_000);
    expect(lease.held).toBe(true);
    expect(backend.count('renew')).toBeLessThanOrEqual(330);
    await lease.release();
  });

  it('renews no lock after its release, and stops its timer', async () => {
    const process = await world.process();
    const { locks, backend, runtime } = process;
    const lease = await locks.acquire('order');
    await runtime.advance(25_000);
    const renewals = backend.count('renew');
    await lease.release();
    await runtime.advance(100_000);
    expect(backend.count('renew')).toBe(renewals);
    expect(runtime.timers).toBe(0);
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('renews no lock after its release, even when a renewal was under way then', async () => {
    const { locks, backend, runtime } = await world.process();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'renew');
    const lease = await locks.acquire('order');
    await runtime.advance(10_100);
    await lease.release();
    answer.open();
    await runtime.advance(100_000);
    expect(backend.count('renew')).toBe(1);
    expect(runtime.timers).toBe(0);
  });

  it('renews many locks with one timer', async () => {
    const { locks, backend, runtime } = await world.process();
    const leases = await Promise.all(Array.from({ length: 2_000 }, (_, i) => locks.acquire(`order:${i}`)));
    expect(runtime.timers).toBe(1);
    // One more is acquired while the renewals of a round, which take several turns, are under way.
    const off = locks.on('renewed', () => {
      off();
      void locks.acquire('late').then((lease) => leases.push(lease));
    });
    await runtime.advance(60_000);
    expect(leases.length).toBe(2_001);
    expect(backend.count('renew')).toBeLessThanOrEqual(2_001 * 7);
    expect(leases.every(({ held }) => held)).toBe(true);
    expect(runtime.timers).toBe(1);
    await Promise.all(leases.map((lease) => lease.release()));
  });

  it('renews what was acquired at different times, each in time', async () => {
    const { locks, runtime } = await world.process({ watchdogTimeout: ms(3_000) });
    const leases: Lease[] = [];
    for (let i = 0; i < 100; i++) {
      leases.push(await locks.acquire(`order:${i}`));
      await runtime.advance(37);
      if (i % 7 === 3) await leases[i - 3].release();
    }
    await runtime.advance(10_000);
    for (const [i, lease] of leases.entries()) expect(lease.held).toBe((i + 3) % 7 !== 3 || i + 3 >= 100);
  });

  it('renews a lock in time whose answer came late', async () => {
    const { locks, backend, runtime } = await world.process({ watchdogTimeout: ms(300) });
    const late = (time: number) =>
      backend.disturb(async (execute) => {
        const reply = await execute();
        await new Promise<void>((resolve) => void runtime.timer(time, resolve));
        return reply;
      }, 'acquire');
    late(200);
    const slow = locks.acquire('slow');
    await runtime.advance(199);
    backend.heal();
    const quick = await locks.acquire('quick');
    const lease = await runtime.until(slow);
    await runtime.advance(1_000);
    expect(quick.held).toBe(true);
    expect(lease.held).toBe(true);
    await quick.release();
    await lease.release();
  });

  it('does not renew leases with a leaseTime: they end', async () => {
    const { locks, backend, runtime } = await world.process();
    const lease = await locks.acquire('order', { leaseTime: '10s' });
    const events: string[] = [];
    locks.on('lost', ({ name }) => events.push(name));
    await runtime.advance(9_890);
    expect(lease.held).toBe(true);
    await runtime.advance(10);
    expect(lease.held).toBe(false);
    expect(lease.signal.aborted).toBe(true);
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(events).toEqual(['order']);
    expect(backend.count('renew')).toBe(0);
    await runtime.advance(100);
    expect(await locks.isLocked('order')).toBe(false);
    expect(await errorOf(lease.release())).toBe(lease.signal.reason);
  });

  it('continues after a hand-off, with the same owner', async () => {
    const { locks, backend, runtime } = await world.process();
    const first = await locks.acquire('order');
    await runtime.advance(200); // no tokens are reserved until the wall clock has caught up
    // Waiters are counted when the lock is acquired, so from here on there are tokens for hand-offs.
    const second = locks.acquire('order');
    const third = locks.acquire('order');
    await first.release();
    await (await second).release();
    const lease = await third;
    expect(lease.owner).toBe((await second).owner);
    await runtime.advance(100_000);
    expect(lease.held).toBe(true);
    expect(backend.count('renew')).toBeGreaterThanOrEqual(9);
    await lease.release();
  });

  it('reports renewals', async () => {
    const { locks, runtime } = await world.process();
    const events: unknown[] = [];
    locks.on('renewed', (event) => events.push(event));
    const lease = await locks.acquire('order');
    await runtime.advance(10_100);
    expect(events).toEqual([{ name: 'order', type: 'reentrant', group: '', method: '', owner: lease.owner }]);
    await lease.release();
  });

  describe('when renewals fail', () => {
    it.each([
      ['are refused', refused],
      ['lose their answers', answerLost],
    ])('because they %s, tries again until they succeed', async (_, disturbance) => {
      const { locks, backend, runtime, logger } = await world.process();
      const lease = await locks.acquire('order');
      backend.disturb(disturbance, 'renew');
      await runtime.advance(25_000);
      expect(lease.held).toBe(true);
      expect(backend.count('renew')).toBeLessThanOrEqual(35);
      expect(logger.warnings).toEqual([expect.stringContaining("Could not renew the lock 'order'")]);
      backend.heal();
      await runtime.advance(60_000);
      expect(lease.held).toBe(true);
      await lease.release();
    });

    it('tries very many again at the same pace, and with one timer', async () => {
      const { locks, backend, runtime } = await world.process();
      const leases = await Promise.all(Array.from({ length: 700 }, (_, i) => locks.acquire(`order:${i}`)));
      backend.disturb(refused, 'renew');
      await runtime.advance(15_000);
      expect(runtime.timers).toBe(1);
      expect(backend.count('renew')).toBeGreaterThanOrEqual(700 * 3);
      expect(backend.count('renew')).toBeLessThanOrEqual(700 * 12);
      backend.heal();
      await runtime.advance(2_500);
      for (const lease of leases) expect(lease.remainingTime()).toBeGreaterThan(25_000);
      await Promise.all(leases.map((lease) => lease.release()));
    });

    it('until the lease is over, gives it up at that moment and not later', async () => {
      const { locks, backend, runtime } = await world.process();
      const lease = await locks.acquire('order');
      const lost: unknown[] = [];
      locks.on('lost', (event) => lost.push(event));
      const { signal } = lease;
      backend.disturb(refused, 'renew', 'release');
      await runtime.advance(VALID - 1);
      expect(lease.held).toBe(true);
      expect(signal.aborted).toBe(false);
      await runtime.advance(2);
      expect(signal.aborted).toBe(true);
      expect(lease.held).toBe(false);
      expect(lease.remainingTime()).toBe(0);
      expect(() => lease.assertHeld()).toThrow(LockLostError);
      expect(lost).toMatchObject([{ name: 'order', type: 'reentrant', owner: lease.owner, error: signal.reason }]);
      expect(await errorOf(lease.release())).toBe(signal.reason);
    });

    it('because they get no answer at all, gives the lease up in time too', async () => {
      const { locks, backend, runtime } = await world.process();
      const lease = await locks.acquire('order');
      backend.disturb(() => new Promise(() => {}), 'renew', 'release');
      await runtime.advance(VALID + 1);
      expect(lease.signal.aborted).toBe(true);
    });

    it('counts from before a renewal was sent, not from its answer', async () => {
      const { locks, backend, runtime } = await world.process();
      const lease = await locks.acquire('order');
      backend.disturb(async (execute) => {
        const reply = await execute();
        await new Promise<void>((resolve) => runtime.timer(5_000, resolve));
        return reply;
      }, 'renew');
      await runtime.advance(15_100);
      expect(lease.remainingTime()).toBeLessThan(VALID - 5_000);
      expect(lease.remainingTime()).toBeGreaterThan(VALID - 6_000);
      await lease.release();
    });
  });

  describe('when the lock is gone', () => {
    it('is found out at the next renewal, and reported at once', async () => {
      const { locks, runtime } = await world.process();
      const other = await world.process();
      const lease = await locks.acquire('order');
      await other.locks.forceRelease('order');
      const thief = await other.locks.acquire('order');
      await runtime.advance(10_100);
      expect(lease.signal.aborted).toBe(true);
      expect(await errorOf(lease.release())).toBeInstanceOf(LockLostError);
      expect(thief.held).toBe(true);
      await thief.release();
    });

    it('aborts the signals of all shares', async () => {
      const { locks, runtime } = await world.process();
      const other = await world.process();
      await errorOf(
        locks.withLock('order', (outer) =>
          locks.withLock('order', async (inner) => {
            await other.locks.forceRelease('order');
            await runtime.advance(10_100);
            expect(inner.signal.aborted).toBe(true);
            expect(outer.signal.aborted).toBe(true);
          }),
        ),
      );
    });

    it('lets the waiters of the same process contend again', async () => {
      const { locks, runtime } = await world.process();
      const other = await world.process();
      const lease = await locks.acquire('order');
      const waiting = locks.acquire('order');
      await other.locks.forceRelease('order');
      const next = await runtime.until(waiting);
      expect(runtime.monotonic()).toBeLessThan(10_100);
      expect(lease.held).toBe(false);
      expect(next.held).toBe(true);
      expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
      await errorOf(lease.release());
      await runtime.settle();
      expect(next.held).toBe(true);
      await next.release();
    });

    it('makes nested code acquire the lock again instead of re-entering', async () => {
      const { locks, runtime } = await world.process();
      const other = await world.process();
      const error = await errorOf(
        locks.withLock('order', async (outer) => {
          await other.locks.forceRelease('order');
          await runtime.advance(10_100);
          await locks.withLock('order', async (inner) => {
            expect(inner.owner).not.toBe(outer.owner);
            expect(inner.held).toBe(true);
          });
        }),
      );
      expect(error).toBeInstanceOf(LockLostError);
    });
  });

  describe('when the event loop is blocked', () => {
    it('for longer than the lease, the body learns of it from its signal and from release()', async () => {
      const { locks, runtime } = await world.process();
      const lease = await locks.acquire('order');
      const { signal } = lease;
      runtime.block(31_000);
      expect(lease.held).toBe(false);
      await runtime.advance(0);
      expect(signal.aborted).toBe(true);
      expect(await errorOf(lease.release())).toBe(signal.reason);
    });

    it('for longer than the lease, release() reports it also before any timer has come', async () => {
      const { locks, runtime } = await world.process();
      const lease = await locks.acquire('order');
      const { signal } = lease;
      const lost: unknown[] = [];
      locks.on('lost', (event) => lost.push(event));
      runtime.block(29_900);
      const error = await errorOf(lease.release());
      expect(error).toBeInstanceOf(LockLostError);
      expect(signal.reason).toBe(error);
      expect(lost.length).toBe(1);
    });

    it('for longer than the lease, detach() reports it also before any timer has come, and asks nobody', async () => {
      const { locks, backend, runtime } = await world.process();
      const lease = await locks.acquire('order');
      const { signal } = lease;
      const asked = backend.count();
      runtime.block(29_900);
      const error = await errorOf(lease.detach({ for: 60_000 }));
      expect(error).toBeInstanceOf(LockLostError);
      expect(signal.reason).toBe(error);
      expect(backend.count()).toBe(asked);
    });

    it('for less than the lease, nothing is lost', async () => {
      const { locks, runtime } = await world.process();
      const lease = await locks.acquire('order');
      runtime.block(25_000);
      await runtime.advance(100_000);
      expect(lease.held).toBe(true);
      await lease.release();
    });

    it('while an answer is under way, no lease is given that is over already', async () => {
      const { locks, backend, runtime } = await world.process();
      let slow = true;
      backend.disturb(async (execute) => {
        const reply = await execute();
        if (slow) runtime.block(31_000);
        slow = false;
        return reply;
      }, 'acquire');
      const lease = await runtime.until(locks.acquire('order'), 60_000);
      expect(lease.held).toBe(true);
      expect(backend.count('acquire')).toBe(2);
      await lease.release();
    });
  });

  describe('when the machine was suspended, or its clock set', () => {
    it.each([
      ['suspended', 8_000],
      ['advanced', 8_000],
      ['set back', -3_600_000],
    ])('%s, counts no lease as held until a renewal confirms it, which comes at once', async (_, by) => {
      const { locks, backend, runtime } = await world.process();
      const lease = await locks.acquire('order');
      await runtime.advance(2_500);
      runtime.setWallClock(by);
      expect(lease.held).toBe(false);
      expect(() => lease.assertHeld()).toThrow('clocks of this machine jumped');
      expect(lease.signal.aborted).toBe(false);
      await runtime.advance(1_000);
      expect(backend.count('renew')).toBe(1);
      expect(lease.held).toBe(true);
      await lease.release();
    });

    it('while a renewal is under way, renews once more: its answer says nothing about the time since then', async () => {
      const { locks, backend, runtime } = await world.process();
      const lease = await locks.acquire('order');
      const answer = latch();
      backend.disturb(answerAfter(answer.promise), 'renew');
      await runtime.advance(10_100);
      expect(backend.count('renew')).toBe(1);
      runtime.setWallClock(-3_600_000);
      await runtime.advance(1_000);
      backend.heal();
      answer.open();
      await runtime.advance(100);
      expect(backend.count('renew')).toBe(2);
      expect(lease.held).toBe(true);
      await lease.release();
    });

    it('right after the acquisition, notices too', async () => {
      const { locks, runtime } = await world.process();
      const lease = await locks.acquire('order');
      runtime.suspend(8_000);
      expect(lease.held).toBe(false);
      await runtime.advance(1_000);
      expect(lease.held).toBe(true);
      await lease.release();
    });

    it('for longer than the lease, gives the lease up', async () => {
      const { locks, runtime } = await world.process();
      const lease = await locks.acquire('order');
      const fixed = await locks.acquire('basket', { leaseTime: '20s' });
      await runtime.advance(2_500);
      runtime.suspend(40_000);
      expect(lease.held).toBe(false);
      expect(fixed.held).toBe(false);
      await runtime.advance(1_000);
      for (const { signal } of [lease, fixed]) expect(signal.reason).toBeInstanceOf(LockLostError);
      await errorOf(lease.release());
    });

    it('for less than a second, reports the end of a fixed lease no later for that', async () => {
      const { locks, runtime } = await world.process();
      const lease = await locks.acquire('order', { leaseTime: '60s' });
      const since = runtime.wall();
      let lostAfter = 0;
      lease.signal.addEventListener('abort', () => {
        lostAfter = runtime.wall() - since;
      });
      await runtime.advance(20_000);
      runtime.suspend(900);
      await runtime.advance(45_000);
      expect(lostAfter).toBeCloseTo(60_000 * 0.99, -2);
      await errorOf(lease.release());
    });

    it('renews each of many leases once', async () => {
      const { locks, backend, runtime } = await world.process();
      const leases = await Promise.all(Array.from({ length: 1_500 }, (_, i) => locks.acquire(`order:${i}`)));
      await runtime.advance(2_500);
      runtime.suspend(8_000);
      await runtime.advance(1_000);
      expect(leases.every(({ held }) => held)).toBe(true);
      expect(backend.count('renew')).toBe(1_500);
      await Promise.all(leases.map((lease) => lease.release()));
    });

    it('ignores a clock that is set by less than a second', async () => {
      const { locks, backend, runtime } = await world.process();
      const lease = await locks.acquire('order');
      await runtime.advance(2_500);
      runtime.setWallClock(900);
      expect(lease.held).toBe(true);
      await runtime.advance(1_000);
      expect(backend.count('renew')).toBe(0);
      await lease.release();
    });
  });

  describe('with extend()', () => {
    it('resumes renewals when the extension runs out', async () => {
      const { locks, backend, runtime } = await world.process();
      const lease = await locks.acquire('order');
      await lease.extend('5m');
      const renewals = backend.count('renew');
      await runtime.advance(270_000);
      expect(backend.count('renew')).toBe(renewals);
      await runtime.advance(600_000);
      expect(lease.held).toBe(true);
      await lease.release();
    });

    it('reports the loss of every other lock at its deadline, even while an extended lease is renewed', async () => {
      const { locks, backend, runtime } = await world.process();
      const extended = await locks.acquire('stock');
      await extended.extend('2m');
      await runtime.advance(86_000);
      const since = runtime.monotonic();
      const lease = await locks.acquire('order');
      backend.disturb(() => new Promise(() => {}), 'renew');
      let lostAfter = 0;
      lease.signal.addEventListener('abort', () => {
        lostAfter = runtime.monotonic() - since;
      });
      await runtime.advance(40_000);
      expect(backend.count('renew')).toBe(3); // the extension, and both renewals
      expect(lostAfter).toBeCloseTo(VALID, -1);
      for (const lost of [lease, extended]) await errorOf(lost.release());
    });

    it('reports a loss at the deadline, even if its renewal began late', async () => {
      const { locks, backend, runtime } = await world.process();
      const lease = await locks.acquire('order');
      await runtime.advance(700); // so that the delayed timer fires before the renewal that is due
      const since = runtime.monotonic();
      await lease.extend('1m');
      await runtime.advance(38_800);
      backend.disturb(() => new Promise(() => {}), 'renew');
      let lostAfter = 0;
      lease.signal.addEventListener('abort', () => {
        lostAfter = runtime.monotonic() - since;
      });
      runtime.block(20_550);
      await runtime.advance(2_000);
      expect(lostAfter).toBeCloseTo(60_000 * 0.99 - 2, -1);
      await errorOf(lease.release());
    });

    it('never counts on a longer lease than the backend has when a renewal comes in between', async () => {
      const { locks, backend, runtime } = await world.process();
      const lease = await locks.acquire('order');
      await runtime.advance(9_400);
      const answer = latch();
      let extension = true;
      backend.disturb(async (execute) => {
        const reply = await execute();
        if (extension) {
          extension = false;
          await answer.promise;
        }
        return reply;
      }, 'renew');
      const extended = lease.extend('60s');
      await runtime.advance(1_000); // the watchdog's own renewal
      answer.open();
      await extended;
      const [{ remainingTime }] = (await locks.inspect('order')).owners;
      expect(lease.remainingTime()).toBeLessThanOrEqual(remainingTime);
      await runtime.advance(120_000);
      expect(lease.held).toBe(true);
      await lease.release();
    });
  });

  it('does not count on the old lease when a shorter one may have been set', async () => {
    const { locks, backend, runtime } = await world.process();
    const lease = await locks.acquire('order', { leaseTime: '60s' });
    backend.disturb(answerLost, 'renew');
    expect(await errorOf(lease.extend('5s'))).toBeInstanceOf(LockUnavailableError);
    expect(lease.held).toBe(true);
    expect(lease.remainingTime()).toBeLessThan(5_000);
    expect(await errorOf(lease.extend('60s'))).toBeInstanceOf(LockUnavailableError);
    expect(lease.remainingTime()).toBeLessThan(5_000);
    await runtime.advance(5_000);
    expect(lease.signal.aborted).toBe(true);
    await errorOf(lease.release());
  });

  it('does not count on the old lease while the answer about a shorter one is under way', async () => {
    const { locks, backend, runtime } = await world.process();
    const lease = await locks.acquire('order', { leaseTime: '60s' });
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'renew');
    const extended = lease.extend('5s');
    expect(lease.remainingTime()).toBeLessThan(5_000);
    await runtime.advance(5_000);
    expect(lease.signal.aborted).toBe(true);
    answer.open();
    expect(await errorOf(extended)).toBeInstanceOf(LockLostError);
    await errorOf(lease.release());
  });

  it('does not mistake a late answer for news of the next owner', async () => {
    const { locks, backend, runtime } = await world.process();
    const other = await world.process();
    const answer = latch();
    backend.listenToClient = () => ({ ready: new Promise(() => {}), close: () => {} });
    backend.disturb(answerAfter(answer.promise), 'renew');
    const first = await locks.acquire('order');
    const second = locks.acquire('order');
    await runtime.advance(10_100);
    await first.release();
    const lease = await second;
    await other.locks.forceRelease('order');
    answer.open();
    await runtime.settle();
    expect(lease.held).toBe(true);
    await runtime.advance(10_100);
    expect(lease.held).toBe(false);
    await errorOf(lease.release());
  });
});
