import { setTimeout as sleep } from 'node:timers/promises';
import { LockLostError } from '../../../lib/engine/errors.js';
import { ms, openWorld } from '../../support/lock-world.js';
import { errorOf } from '../../support/section.js';
import { until } from '../../support/until.js';

describe('a lock service on Redis', () => {
  const world = openWorld('Redis');
  const admin = () => world.redis.client();
  const keyOf = (name: string) => `${world.keyPrefix}${name}`;

  describe('loses a lock, and says so by signal and release()', () => {
    it('when its key is deleted', async () => {
      const locks = await world.service({ watchdogTimeout: ms(300) });
      const lease = await locks.acquire('order');
      const { signal } = lease;
      await admin().del(keyOf('order'));
      await until(() => signal.aborted);
      expect(await errorOf(lease.release())).toBe(signal.reason);
      expect(signal.reason).toBeInstanceOf(LockLostError);
    });

    it('when its key is deleted right before the release', async () => {
      const locks = await world.service();
      const lease = await locks.acquire('order');
      await admin().del(keyOf('order'));
      expect(await errorOf(lease.release())).toBeInstanceOf(LockLostError);
    });

    it('when Redis is paused for longer than the lease', async () => {
      const process = await world.process({ watchdogTimeout: ms(1_000), commandTimeout: 300 });
      const lease = await process.locks.acquire('order');
      const { signal } = lease;
      world.redis.pause();
      const began = performance.now();
      try {
        await until(() => signal.aborted, 10_000);
        expect(performance.now() - began).toBeLessThan(5_000);
        expect(lease.held).toBe(false);
        expect(await errorOf(lease.release())).toBe(signal.reason);
      } finally {
        world.redis.resume();
      }
      const next = await process.locks.acquire('order', { waitTime: '20s' });
      expect(next.held).toBe(true);
      await next.release();
    });

    it('when the event loop is blocked for longer than the lease', async () => {
      const [locks, other] = await world.services(2, { watchdogTimeout: ms(200) });
      const error = await errorOf(
        locks.withLock('order', async ({ signal }) => {
          const end = performance.now() + 400;
          while (performance.now() < end);
          await until(() => signal.aborted);
        }),
      );
      expect(error).toBeInstanceOf(LockLostError);
      expect(await other.isLocked('order')).toBe(false);
    });

    it('but not when Redis is away for less than the lease', async () => {
      const locks = await world.service({ watchdogTimeout: ms(6_000), commandTimeout: 300 });
      const lease = await locks.acquire('order');
      world.redis.pause();
      await sleep(2_400); // a renewal falls due
      world.redis.resume();
      await sleep(3_900); // longer than the lease since it was acquired
      expect(lease.held).toBe(true);
      await lease.release();
    });
  });

  it('keeps a lock that it renews in time, whatever else it sends', async () => {
    const locks = await world.service({ watchdogTimeout: ms(3_000) });
    const lease = await locks.acquire('steady');
    const { signal } = lease;
    const end = performance.now() + 3_500;
    let round = 0;
    while (performance.now() < end) {
      round++;
      await Promise.all(
        Array.from({ length: 300 }, (_, i) =>
          locks.withLock(`order:${round}:${i}`, { leaseTime: '10s' }, async () => {}),
        ),
      );
    }
    expect(signal.aborted).toBe(false);
    expect(lease.held).toBe(true);
    await lease.release();
  });
});
