import { setTimeout as sleep } from 'node:timers/promises';
import { LockLostError, LockNotOwnedError, LockUpgradeError } from '../../lib/engine/errors.js';
import type { LockService } from '../../lib/nest/lock.service.js';
import { ms, nothingIsLeft, openWorld, STORES } from '../support/lock-world.js';
import { errorOf, Section } from '../support/section.js';
import { until } from '../support/until.js';
import { refused } from '../support/watched-backend.js';
import { flow, locked } from './flow.js';

const SHORT = 300;

describe.each(STORES)('the read/write lock, on %s', (store) => {
  const world = openWorld(store);
  const read = (service: LockService) => service.getReadWriteLock('order').readLock();
  const write = (service: LockService) => service.getReadWriteLock('order').writeLock();

  it('readers share', async () => {
    const services = await world.services(3);
    const section = new Section();
    const readers = Array.from({ length: 9 }, (_, n) =>
      locked(read(services[n % 3]), async () => {
        section.entries.push(`${n}`);
        await until(() => section.entries.length === 9); // they are all inside
      }),
    );
    await Promise.all(readers);
    expect(await services[0].isLocked('order')).toBe(false);
  });

  it('a writer excludes both', async () => {
    const [one, two] = await world.services(2);
    await locked(write(one), async () => {
      for (const service of [one, two]) {
        expect(await flow(() => read(service).tryLock())).toBe(false);
        expect(await flow(() => write(service).tryLock())).toBe(false);
      }
    });
    await locked(read(one), async () => {
      expect(await flow(() => write(one).tryLock())).toBe(false);
      expect(await flow(() => write(two).tryLock())).toBe(false);
      expect(await flow(() => read(two).tryLock(0, 1_000))).toBe(true);
    });
  });

  it('serves readers and writers of several instances, writers alone', async () => {
    const services = await world.services(3);
    let readers = 0;
    let writers = 0;
    let faults = 0;
    const check = () => {
      if (writers > 1 || (writers === 1 && readers > 0)) faults++;
    };
    const reader = async () => {
      readers++;
      check();
      await sleep(2);
      readers--;
    };
    const writer = async () => {
      writers++;
      check();
      await sleep(2);
      writers--;
    };
    await Promise.all(
      Array.from({ length: 60 }, (_, n) => {
        const service = services[n % 3];
        return n % 5 === 0 ? locked(write(service), writer) : locked(read(service), reader);
      }),
    );
    expect(faults).toBe(0);
  });

  it('write → read downgrade, and the write unlock then leaves a read lock', () =>
    flow(async () => {
      const [one, two] = await world.services(2);
      await write(one).lock();
      await read(one).lock();
      expect([write(one).getHoldCount(), read(one).getHoldCount()]).toEqual([1, 1]);
      expect(await flow(() => read(two).tryLock())).toBe(false);
      await write(one).unlock();
      expect(await read(one).isLocked()).toBe(true);
      expect(await write(one).isLocked()).toBe(false);
      expect(await flow(() => write(two).tryLock())).toBe(false);
      await locked(read(two), () => {});
      await read(one).unlock();
      expect(await two.isLocked('order')).toBe(false);
      expect(await flow(() => write(two).tryLock(0, 1_000))).toBe(true);
    }));

  it('leaves nothing behind when the read lock is lost that a writer has kept', async () => {
    const process = await world.process();
    const { locks } = process;
    const reader = await locks.withLock('order', { type: 'write' }, () => locks.acquire('order', { type: 'read' }));
    await locks.forceRelease('order');
    expect(reader.signal.aborted).toBe(true);
    expect(await errorOf(reader.release())).toBeInstanceOf(LockLostError);
    await nothingIsLeft(process);
  });

  it('read → write upgrade does not deadlock silently', () =>
    flow(async () => {
      const [one, two] = await world.services(2);
      await read(one).lock();
      expect(await errorOf(write(one).lock())).toBeInstanceOf(LockUpgradeError);
      expect(await errorOf(write(one).tryLock('5s'))).toBeInstanceOf(LockUpgradeError);
      expect(read(one).isHeldByCurrentOwner()).toBe(true);
      await read(one).unlock();
      await locked(write(two), () => {});
    }));

  it('per-reader lease expiry with differing leases: R R W', async () => {
    const [one, two, three] = await world.services(3);
    await flow(() => read(one).lock(SHORT));
    await flow(() => read(two).lock(3 * SHORT));
    expect(await flow(() => write(three).tryLock())).toBe(false);
    await until(async () => (await three.inspect('order')).owners.length === 1);
    expect(await flow(() => write(three).tryLock())).toBe(false);
    await locked(write(three), () => {});
  });

  it('per-reader lease expiry with differing leases: W R R', async () => {
    const [one, two, three] = await world.services(3);
    await flow(() => write(one).lock(SHORT));
    await flow(() => read(two).lock(SHORT));
    const late = flow(() => read(three).lock(20 * SHORT));
    await late;
    await until(async () => (await one.inspect('order')).owners.length === 1);
    expect(await flow(() => write(one).tryLock(SHORT))).toBe(false);
    await read(three).forceUnlock();
    await locked(write(one), () => {});
  });

  it('zombie reader (crashed) frees the writer after its lease', async () => {
    const [zombie, alive, writer] = await world.processes(3, { watchdogTimeout: ms(2 * SHORT) });
    await flow(() => read(zombie.locks).lock());
    zombie.backend.disturb(refused, 'renew', 'release');
    await locked(read(alive.locks), () => {});
    expect(await flow(() => write(writer.locks).tryLock())).toBe(false);
    await locked(write(writer.locks), () => {});
  });

  it('is kept by its readers and writers beyond the first lease', async () => {
    const [one, two] = await world.services(2, { watchdogTimeout: ms(SHORT) });
    for (const side of [read, write]) {
      await locked(side(one), async () => {
        let renewals = 0;
        const off = one.on('renewed', () => renewals++);
        await until(() => renewals === 4);
        off();
        expect(await flow(() => write(two).tryLock())).toBe(false);
      });
    }
  });

  it('write lease with TTL', async () => {
    const [one, two] = await world.services(2);
    await flow(() => write(one).lock(2 * SHORT));
    expect(await write(two).remainTimeToLive()).toBeGreaterThan(0);
    expect(await write(two).remainTimeToLive()).toBeLessThanOrEqual(2 * SHORT);
    expect(await read(two).remainTimeToLive()).toBe(-2);
    expect(await flow(() => read(two).tryLock())).toBe(false);
    await locked(read(two), () => {});
    expect(await write(two).remainTimeToLive()).toBe(-2);
  });

  it('force-unlock each side', async () => {
    const [one, two, three, four] = await world.services(4);
    expect(await read(four).forceUnlock()).toBe(false);
    await flow(() => read(one).lock());
    await flow(() => read(two).lock());
    expect(await write(four).forceUnlock()).toBe(false);
    expect(await read(four).isLocked()).toBe(true);
    expect(await read(four).forceUnlock()).toBe(true);
    expect(await four.isLocked('order')).toBe(false);
    await flow(() => write(three).lock());
    expect(await read(four).forceUnlock()).toBe(false);
    expect(await write(four).forceUnlock()).toBe(true);
    await locked(write(four), () => {});
  });

  it('force-unlock wakes who waits', async () => {
    const [one, two, three] = await world.services(3);
    await flow(() => write(one).lock());
    const reader = locked(read(two), () => {});
    await until(() => two.engine.waiting('order') === 1);
    await write(three).forceUnlock();
    await reader;
  });

  it('hold counts each side', () =>
    flow(async () => {
      const locks = await world.service();
      const counts = () => [read(locks).getHoldCount(), write(locks).getHoldCount()];
      expect(counts()).toEqual([0, 0]);
      await write(locks).lock();
      await write(locks).lock();
      await read(locks).lock();
      expect(counts()).toEqual([1, 2]);
      await write(locks).unlock();
      await read(locks).lock();
      expect(counts()).toEqual([2, 1]);
      await write(locks).unlock();
      expect(counts()).toEqual([2, 0]);
      expect(await errorOf(write(locks).unlock())).toBeInstanceOf(LockNotOwnedError);
      await read(locks).unlock();
      await read(locks).unlock();
      expect(counts()).toEqual([0, 0]);
      expect(await locks.isLocked('order')).toBe(false);
    }));

  it('a stream of readers does not starve a writer', async () => {
    const [one, two, three] = await world.services(3);
    let stop = false;
    const stream = async (service: LockService) => {
      while (!stop) await locked(read(service), () => sleep(3));
    };
    const streams = [one, one, two, two].map(async (service, n) => {
      await sleep(n); // they overlap
      await stream(service);
    });
    await until(async () => (await three.inspect('order')).owners.length > 1);
    for (let round = 0; round < 3; round++) await locked(write(three), () => {});
    stop = true;
    await Promise.all(streams);
  });
});
