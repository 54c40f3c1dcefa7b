import { LockBusyError, LockLostError, LockUnavailableError } from '../../../lib/engine/errors.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { leftovers, NOTHING, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, refused } from '../../support/watched/watched-backend.js';

describe('code that acquires a lock that it holds already', () => {
  const world = openVirtualWorld();

  it.each(['reentrant', 'fenced', 'fair', 'write', 'read'] as const)('sends no request: type %s', async (type) => {
    const process = await world.process();
    const { locks, backend, runtime } = process;
    await locks.withLock('page', { type }, async (outer) => {
      await locks.withLock('page', { type }, async (inner) => {
        expect([inner.owner, inner.fencingToken]).toEqual([outer.owner, outer.fencingToken]);
      });
      expect(backend.commands).toEqual(['acquire']);
    });
    await runtime.settle();
    expect(backend.commands).toEqual(['acquire', 'release']);
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('is told that a lease has no time left when it ended before the sibling did', async () => {
    const { locks, runtime } = await world.process();
    const over = latch();
    const outcome = errorOf(
      locks.withLock('page', { leaseTime: 1_000 }, async () => {
        const sibling = locks.withLock('page', () => over.promise);
        const waiting = errorOf(locks.acquire('page', { waitTime: 500 }));
        await runtime.settle();
        runtime.block(1_500);
        const error = (await runtime.until(waiting)) as LockBusyError;
        expect(error).toBeInstanceOf(LockBusyError);
        expect(error.remainingTime).toBe(0);
        over.open();
        await sibling.catch(() => {});
      }),
    );
    expect(await outcome).toBeInstanceOf(LockLostError);
  });

  it('lets its siblings in after one that got no answer about the lease', async () => {
    const { locks, backend, runtime } = await world.process();
    await locks.withLock('page', async () => {
      runtime.suspend(5_000);
      backend.disturb(refused, 'renew');
      const failed = errorOf(locks.acquire('page', { waitTime: 300 }));
      const next = locks.withLock('page', async () => 'inside');
      expect(await runtime.until(failed)).toBeInstanceOf(LockUnavailableError);
      backend.heal();
      expect(await runtime.until(next)).toBe('inside');
    });
  });

  it('acquires it anew at once if it was given back before the backend has confirmed it', async () => {
    const { locks, backend, runtime } = await world.process();
    const answer = latch();
    let leaked: Promise<Lease> | undefined;
    await locks.withLock('page', async () => {
      runtime.suspend(5_000);
      backend.disturb(answerAfter(answer.promise), 'renew');
      leaked = locks.acquire('page');
      await runtime.settle();
    });
    answer.open();
    const lease = await runtime.until(leaked as Promise<Lease>, 1_000);
    expect(lease.held).toBe(true);
    await lease.release();
  });

  it('waits no longer than its waitTime in all for a lock that turns out to be lost', async () => {
    const { locks, backend, runtime } = await world.process();
    const outcome = errorOf(
      locks.withLock('page', async (outer) => {
        backend.disturb(async () => {
          await new Promise<void>((resolve) => void runtime.timer(1_000, resolve));
          return false;
        }, 'renew');
        runtime.suspend(5_000);
        const began = runtime.monotonic();
        const waiting = errorOf(locks.acquire('page', { waitTime: 3_000 }));
        expect(await runtime.until(waiting)).toBeInstanceOf(LockBusyError);
        expect(runtime.monotonic() - began).toBeGreaterThan(2_900);
        expect(runtime.monotonic() - began).toBeLessThan(3_500);
        expect(outer.signal.aborted).toBe(true);
      }),
    );
    expect(await outcome).toBeInstanceOf(LockLostError);
  });

  it.each([
    ['has acquired it once more itself', true],
    ['has not', false],
  ])('lets the next sibling in when the one before it has ended, which %s', async (_, acquiresAgain) => {
    const { locks, runtime } = await world.process();
    await locks.withLock('page', async () => {
      const over = latch();
      const first = locks.withLock('page', async () => {
        if (acquiresAgain) await locks.withLock('page', async () => {});
        await over.promise;
      });
      let isInside = false;
      const second = locks.withLock('page', async () => {
        isInside = true;
      });
      await runtime.settle();
      expect(isInside).toBe(false);
      over.open();
      await first;
      await runtime.until(second, 100);
      expect(isInside).toBe(true);
    });
  });

  it('waits no longer than its waitTime in all when its scope ended while it waited for a sibling', async () => {
    const { locks, runtime } = await world.process();
    const lease = await locks.acquire('page');
    const next = locks.acquire('page');
    const waiting = await lease.run(async () => {
      const sibling = await locks.acquire('page');
      const late = errorOf(locks.acquire('page', { waitTime: 3_000 }));
      await runtime.advance(2_000);
      return { sibling, late };
    });
    await lease.release();
    await waiting.sibling.release();
    const refusal = await runtime.until(waiting.late);
    expect(refusal).toBeInstanceOf(LockBusyError);
    expect(runtime.monotonic()).toBe(3_000);
    await (await next).release();
  });
});
