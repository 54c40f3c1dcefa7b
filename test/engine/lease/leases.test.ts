import {
  LockBusyError,
  LockConfigurationError,
  LockError,
  LockLostError,
  LockNotOwnedError,
} from '../../../lib/engine/errors.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { ms, openWorld, STORES } from '../../support/lock-world.js';
import { errorOf } from '../../support/section.js';
import { until } from '../../support/until.js';
import { answerLost, refused } from '../../support/watched/watched-backend.js';

describe.each(STORES)('leases, on %s', (store) => {
  const world = openWorld(store);

  it('describe themselves', async () => {
    const locks = await world.service({ watchdogTimeout: ms(30_000) });
    const lease = await locks.acquire('order:1');
    expect(lease.name).toBe('order:1');
    expect(lease.names).toEqual(['order:1']);
    expect(lease.owner).toMatch(/^[0-9a-f-]{36}:\d+$/);
    expect(Number.isSafeInteger(lease.fencingToken)).toBe(true);
    expect([...lease.tokens]).toEqual([['order:1', lease.fencingToken]]);
    expect(lease.held).toBe(true);
    expect(lease.signal.aborted).toBe(false);
    expect(lease.remainingTime()).toBeGreaterThan(20_000);
    expect(lease.remainingTime()).toBeLessThan(30_000);
    lease.assertHeld();
    await lease.release();
    expect(lease.held).toBe(false);
    expect(lease.remainingTime()).toBe(0);
    expect(lease.signal.aborted).toBe(false);
    expect(() => lease.assertHeld()).toThrow(LockNotOwnedError);
  });

  it('free the lock when they are released', async () => {
    const [locks, other] = await world.services(2);
    const lease = await locks.acquire('order');
    expect(await other.isLocked('order')).toBe(true);
    await lease.release();
    expect(await other.isLocked('order')).toBe(false);
  });

  it('are released once: releasing them again, also at the same time, is harmless and sends nothing', async () => {
    const { locks, backend } = await world.process();
    const lease = await locks.acquire('order');
    await Promise.all([lease.release(), lease.release()]);
    await lease.release();
    expect(backend.count('release')).toBe(1);
  });

  it('take nothing from a later owner when they are released again', async () => {
    const locks = await world.service();
    const first = await locks.acquire('order');
    await first.release();
    const second = await locks.acquire('order');
    await first.release();
    expect(await locks.tryAcquire('order')).toBeNull();
    await second.release();
  });

  it('have tokens that grow with each acquisition, across all services', async () => {
    const services = await world.services(3);
    const tokens: number[] = [];
    for (let i = 0; i < 30; i++) {
      await services[i % 3].withLock('order', async (lease) => void tokens.push(lease.fencingToken));
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
  });

  describe('the end of a body', () => {
    it('gives its result, of a promise or a plain value', async () => {
      const locks = await world.service();
      expect(await locks.withLock('order', async () => 'sold')).toBe('sold');
      expect(await locks.withLock('order', () => 42)).toBe(42);
      expect(await locks.withLock('order', {}, () => undefined)).toBeUndefined();
    });

    it('gives its error as it was thrown, and frees the lock', async () => {
      const locks = await world.service();
      const soldOut = new Error('sold out');
      expect(await errorOf(locks.withLock('order', () => Promise.reject(soldOut)))).toBe(soldOut);
      const atOnce = () => {
        throw soldOut;
      };
      expect(await errorOf(locks.withLock('order', atOnce))).toBe(soldOut);
      expect(await locks.isLocked('order')).toBe(false);
    });

    it('rejects with LockLostError when the body ended well and the lock was taken away', async () => {
      const [locks, other] = await world.services(2);
      const error = await errorOf(
        locks.withLock('order', async () => {
          await other.forceRelease('order');
        }),
      );
      expect(error).toBeInstanceOf(LockLostError);
      expect((error as LockLostError).lockName).toBe('order');
    });

    it('gives the result with onLost: warn, and logs the loss', async () => {
      const { locks, logger } = await world.process();
      const other = await world.service();
      const steal = async () => {
        await other.forceRelease('order');
        return 'sold';
      };
      expect(await locks.withLock('order', { onLost: 'warn' }, steal)).toBe('sold');
      expect(logger.warnings).toEqual([expect.stringMatching(/^The lock 'order' was lost: .*Others may have held it/)]);
      const warning = await world.process({ onLost: 'warn' });
      expect(await warning.locks.withLock('order', steal)).toBe('sold');
      expect(await errorOf(warning.locks.withLock('order', { onLost: 'throw' }, steal))).toBeInstanceOf(LockLostError);
    });

    it('gives the error of the body, not the loss of the lock', async () => {
      const [locks, other] = await world.services(2);
      const soldOut = new Error('sold out');
      const error = await errorOf(
        locks.withLock('order', async () => {
          await other.forceRelease('order');
          throw soldOut;
        }),
      );
      expect(error).toBe(soldOut);
    });

    it.each([
      ['is refused', refused],
      ['loses its answer', answerLost],
    ])(
      'gives the result of the body when its release %s, and frees the lock in the background',
      async (_, disturbance) => {
        const { locks, backend, logger } = await world.process();
        backend.disturb(disturbance, 'release');
        expect(await locks.withLock('order', async () => 'sold')).toBe('sold');
        await until(() => logger.warnings.length > 0);
        expect(logger.warnings).toEqual([expect.stringContaining("The lock 'order' could not be released in time (")]);
        backend.heal();
        await until(async () => !(await locks.isLocked('order')));
      },
    );

    it('gives the error of the body when its release fails too', async () => {
      const { locks, backend } = await world.process();
      backend.disturb(refused, 'release');
      const soldOut = new Error('sold out');
      expect(await errorOf(locks.withLock('order', () => Promise.reject(soldOut)))).toBe(soldOut);
    });

    it('does not release twice what the body has released', async () => {
      const { locks, backend } = await world.process();
      await locks.withLock('order', (lease) => lease.release());
      expect(backend.count('release')).toBe(1);
    });
  });

  describe('await using', () => {
    it('releases at the end of the block, even when it throws', async () => {
      const locks = await world.service();
      {
        await using lease = await locks.acquire('order');
        expect(lease.held).toBe(true);
      }
      expect(await locks.isLocked('order')).toBe(false);
      const throwing = async () => {
        await using _lease = await locks.acquire('order');
        throw new Error('sold out');
      };
      await expect(throwing()).rejects.toThrow('sold out');
      expect(await locks.isLocked('order')).toBe(false);
    });

    it('reports a lost lease', async () => {
      const [locks, other] = await world.services(2);
      const losing = async () => {
        await using _lease = await locks.acquire('order');
        await other.forceRelease('order');
      };
      expect(await errorOf(losing())).toBeInstanceOf(LockLostError);
    });

    it('fails with the loss alone, so that JavaScript can add the error of the block', async () => {
      const [locks, other] = await world.services(2);
      const lease = await locks.acquire('order');
      await other.forceRelease('order');
      expect(await errorOf(lease[Symbol.asyncDispose]())).toBeInstanceOf(LockLostError);
      await lease[Symbol.asyncDispose]();
    });
  });

  describe('forceRelease() of the service that holds the lock', () => {
    it('ends the leases of all shares at once', async () => {
      const locks = await world.service();
      const outer = await locks.acquire('order');
      const { signal } = outer;
      const lost: unknown[] = [];
      locks.on('lost', ({ name }) => lost.push(name));
      await outer.run(async () => {
        const inner = await locks.acquire('order');
        expect(await locks.forceRelease('order')).toBe(true);
        expect(inner.held || outer.held).toBe(false);
        expect(signal.reason).toBeInstanceOf(LockLostError);
        expect(await errorOf(inner.release())).toBe(signal.reason);
      });
      expect(await errorOf(outer.release())).toBe(signal.reason);
      expect(lost).toEqual(['order']);
      const next = await locks.acquire('order');
      await next.release();
    });

    it('leaves its other locks alone', async () => {
      const locks = await world.service();
      const lease = await locks.acquire('stock');
      expect(await locks.forceRelease('order')).toBe(false);
      expect(lease.held).toBe(true);
      await lease.release();
    });
  });

  describe('release() of a lease that was lost', () => {
    it('says so once, aborts the signal, and leaves the new owner alone', async () => {
      const [locks, other] = await world.services(2);
      const lease = await locks.acquire('order');
      await other.forceRelease('order');
      const thief = await other.acquire('order');
      const error = await errorOf(lease.release());
      expect(error).toBeInstanceOf(LockLostError);
      expect(lease.signal.aborted).toBe(true);
      expect(lease.signal.reason).toBe(error);
      await lease.release();
      expect(thief.held).toBe(true);
      expect((await locks.inspect('order')).owners.map(({ owner }) => owner)).toEqual([thief.owner]);
      await thief.release();
    });
  });

  describe('extend()', () => {
    it('lets a fixed lease end that long from now', async () => {
      const locks = await world.service();
      const lease = await locks.acquire('order', { leaseTime: 4_000 });
      await lease.extend('10s');
      expect(lease.remainingTime()).toBeGreaterThan(5_000);
      expect((await locks.inspect('order')).owners[0].remainingTime).toBeGreaterThan(5_000);
      await lease.extend(2_000);
      expect(lease.remainingTime()).toBeLessThan(2_000);
      await lease.release();
    });

    it('makes a watchdog lease longer, never shorter', async () => {
      const locks = await world.service({ watchdogTimeout: ms(30_000) });
      const lease = await locks.acquire('order');
      await lease.extend('1s');
      expect(lease.remainingTime()).toBeGreaterThan(20_000);
      await lease.extend('2m');
      expect(lease.remainingTime()).toBeGreaterThan(100_000);
      await lease.release();
    });

    it('finds out that the lock is lost', async () => {
      const [locks, other] = await world.services(2);
      const lease = await locks.acquire('order');
      await other.forceRelease('order');
      const error = await errorOf(lease.extend('1m'));
      expect(error).toBeInstanceOf(LockLostError);
      expect(lease.held).toBe(false);
      expect(lease.signal.reason).toBe(error);
      expect(await errorOf(lease.extend('1m'))).toBe(error);
      expect(await errorOf(lease.release())).toBe(error);
    });

    it('refuses a released lease, an invalid duration, and one below 100 ms', async () => {
      const locks = await world.service();
      const lease = await locks.acquire('order');
      await expect(lease.extend(99)).rejects.toThrow(LockConfigurationError);
      await expect(lease.extend('soon' as '1s')).rejects.toThrow("extend() of 'order': duration is 'soon'");
      await lease.release();
      await expect(lease.extend('1s')).rejects.toThrow(LockNotOwnedError);
    });
  });

  it('of a try-lock are null while the lock is busy; other errors are thrown', async () => {
    const [locks, other] = await world.services(2);
    const lease = (await locks.tryAcquire('order')) as Lease;
    expect(await other.tryAcquire('order')).toBeNull();
    expect(await other.tryAcquire('order', { waitTime: undefined })).toBeNull();
    await expect(other.tryAcquire('')).rejects.toThrow(LockError);
    const waiting = other.tryAcquire('order', { waitTime: '10s' });
    await lease.release();
    expect(await waiting).not.toBeNull();
  });

  it('are refused with what is known about the holder', async () => {
    const [locks, other] = await world.services(2);
    const lease = await locks.acquire('order', { leaseTime: '10s' });
    for (const service of [locks, other]) {
      const error = (await errorOf(service.acquire('order', { waitTime: 0 }))) as LockBusyError;
      expect(error).toBeInstanceOf(LockBusyError);
      expect(error).toMatchObject({ name: 'LockBusyError', lockName: 'order', holder: lease.owner });
      expect(error.remainingTime).toBeGreaterThan(5_000);
      expect(error.remainingTime).toBeLessThanOrEqual(10_000);
    }
    await lease.release();
  });

  it('are seen by inspect(), from the holder and from elsewhere', async () => {
    const [locks, other] = await world.services(2);
    expect(await locks.inspect('order')).toMatchObject({ locked: false, type: 'free', owners: [], waiting: 0 });
    const lease = await locks.acquire('order');
    const waiting = locks.acquire('order');
    const { owner } = lease;
    expect(await locks.inspect('order')).toMatchObject({
      locked: true,
      type: 'exclusive',
      owners: [{ owner, mine: true }],
      waiting: 1,
      fencingToken: lease.fencingToken,
    });
    expect(await other.inspect('order')).toMatchObject({ owners: [{ owner, mine: false }], waiting: 0 });
    await lease.release();
    await (await waiting).release();
  });
});
