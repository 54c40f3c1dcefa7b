import { setTimeout as sleep } from 'node:timers/promises';
import { LockLostError, LockUpgradeError } from '../../lib/engine/errors.js';
import type { Lease } from '../../lib/engine/terms/lease.js';
import type { LockHandle } from '../../lib/handles/lock-handle.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { backendOf, ms, nothingIsLeft, openWorld, STORES } from '../support/lock-world.js';
import { errorOf, Section } from '../support/section.js';
import { woken } from '../support/time-limits.js';
import { until } from '../support/until.js';
import { refused } from '../support/watched/watched-backend.js';
import { locked } from './locked.js';

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
        expect(await read(service).tryLock()).toBeNull();
        expect(await write(service).tryLock()).toBeNull();
      }
    });
    await locked(read(one), async () => {
      expect(await write(one).tryLock()).toBeNull();
      expect(await write(two).tryLock()).toBeNull();
      expect(await read(two).tryLock(0, 1_000)).not.toBeNull();
    });
  });

  it('serves a writer when the last lease of a reader ends, although a longer one was released before', async () => {
    const [one, two, three] = await world.services(3);
    const long = await one.acquire('order', { type: 'read', leaseTime: '10m' });
    await two.acquire('order', { type: 'read', leaseTime: '2s' });
    const writing = three.acquire('order', { type: 'write', waitTime: '1m' });
    await sleep(SHORT); // it has asked, and knows when the longer lease ends
    await long.release();
    await (await writing).release();
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

  it('write → read downgrade, and the write unlock then leaves a read lock', async () => {
    const [one, two] = await world.services(2);
    const writing = await write(one).lock();
    const reading = await writing.run(() => read(one).lock());
    await writing.run(() =>
      reading.run(() => expect([write(one).getHoldCount(), read(one).getHoldCount()]).toEqual([1, 1])),
    );
    expect(await read(two).tryLock()).toBeNull();
    await writing.release();
    expect(await read(one).isLocked()).toBe(true);
    expect(await write(one).isLocked()).toBe(false);
    expect(await write(two).tryLock()).toBeNull();
    await locked(read(two), () => {});
    await reading.release();
    expect(await two.isLocked('order')).toBe(false);
    expect(await write(two).tryLock(0, 1_000)).not.toBeNull();
  });

  it('leaves nothing behind when the read lock is lost that a writer has kept', async () => {
    const process = await world.process();
    const { locks } = process;
    const reader = await locks.withLock('order', { type: 'write' }, () => locks.acquire('order', { type: 'read' }));
    await locks.forceRelease('order');
    expect(reader.signal.aborted).toBe(true);
    expect(await errorOf(reader.release())).toBeInstanceOf(LockLostError);
    await nothingIsLeft(process);
  });

  it('read → write upgrade does not deadlock silently', async () => {
    const [one, two] = await world.services(2);
    await locked(read(one), (lease) =>
      lease.run(async () => {
        expect(await errorOf(write(one).lock())).toBeInstanceOf(LockUpgradeError);
        expect(await errorOf(write(one).tryLock('5s'))).toBeInstanceOf(LockUpgradeError);
        expect(read(one).isHeldByCurrentScope()).toBe(true);
      }),
    );
    await locked(write(two), () => {});
  });

  it('per-reader lease expiry with differing leases: R R W', async () => {
    const [one, two, three] = await world.services(3);
    await read(one).lock(SHORT);
    await read(two).lock(3 * SHORT);
    expect(await write(three).tryLock()).toBeNull();
    await until(async () => (await three.inspect('order')).owners.length === 1);
    expect(await write(three).tryLock()).toBeNull();
    await locked(write(three), () => {});
  });

  it('per-reader lease expiry with differing leases: W R R', async () => {
    const [one, two, three] = await world.services(3);
    await write(one).lock(SHORT);
    await read(two).lock(SHORT);
    const late = read(three).lock(20 * SHORT);
    await late;
    await until(async () => (await one.inspect('order')).owners.length === 1);
    expect(await write(one).tryLock(SHORT)).toBeNull();
    await read(three).forceUnlock();
    await locked(write(one), () => {});
  });

  it('zombie reader (crashed) frees the writer after its lease', async () => {
    const [zombie, alive, writer] = await world.processes(3, { watchdogTimeout: ms(2 * SHORT) });
    await read(zombie.locks).lock();
    zombie.backend.disturb(refused, 'renew', 'release');
    await locked(read(alive.locks), () => {});
    expect(await write(writer.locks).tryLock()).toBeNull();
    await locked(write(writer.locks), () => {});
  });

  it('is kept by its readers and writers beyond the first lease', async () => {
    // Three renewals in a lease. It is long enough for a busy machine to be late for two of them.
    const [one, two] = await world.services(2, { watchdogTimeout: ms(3_000) });
    for (const side of [read, write]) {
      await locked(side(one), async () => {
        let renewals = 0;
        const off = one.on('renewed', () => renewals++);
        await until(() => renewals >= 4);
        off();
        expect(await write(two).tryLock()).toBeNull();
      });
    }
  });

  it('write lease with TTL', async () => {
    const [one, two] = await world.services(2);
    await write(one).lock(2 * SHORT);
    expect(await write(two).remainTimeToLive()).toBeGreaterThan(0);
    expect(await write(two).remainTimeToLive()).toBeLessThanOrEqual(2 * SHORT);
    expect(await read(two).remainTimeToLive()).toBe(-2);
    expect(await read(two).tryLock()).toBeNull();
    await locked(read(two), () => {});
    expect(await write(two).remainTimeToLive()).toBe(-2);
  });

  it('force-unlock each side', async () => {
    const [one, two, three, four] = await world.services(4);
    expect(await read(four).forceUnlock()).toBe(false);
    await read(one).lock();
    await read(two).lock();
    expect(await write(four).forceUnlock()).toBe(false);
    expect(await read(four).isLocked()).toBe(true);
    expect(await read(four).forceUnlock()).toBe(true);
    expect(await four.isLocked('order')).toBe(false);
    await write(three).lock();
    expect(await read(four).forceUnlock()).toBe(false);
    expect(await write(four).forceUnlock()).toBe(true);
    await locked(write(four), () => {});
  });

  it('force-unlock wakes the waiters', async () => {
    const [one, two, three] = await world.services(3);
    await write(one).lock();
    const reader = locked(read(two), () => {});
    await until(() => backendOf(two).isAsleep);
    await write(three).forceUnlock();
    await woken(reader);
  });

  it('hold counts each side', async () => {
    const locks = await world.service();
    const counts = () => [read(locks).getHoldCount(), write(locks).getHoldCount()];
    const inside = (lock: LockHandle, body: (lease: Lease) => unknown) =>
      locked(lock, (lease) => lease.run(() => body(lease)));
    expect(counts()).toEqual([0, 0]);
    await inside(write(locks), (first) =>
      inside(write(locks), (second) =>
        inside(read(locks), async () => {
          expect(counts()).toEqual([1, 2]);
          await second.release();
          await inside(read(locks), async () => {
            expect(counts()).toEqual([2, 1]);
            await first.release();
            expect(counts()).toEqual([2, 0]);
            expect(write(locks).isHeldByCurrentScope()).toBe(false);
          });
          expect(counts()).toEqual([1, 0]);
        }),
      ),
    );
    expect(counts()).toEqual([0, 0]);
    expect(await locks.isLocked('order')).toBe(false);
  });

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
    for (let round = 0; round < 3; round++) await woken(locked(write(three), () => {}));
    stop = true;
    await Promise.all(streams);
  });
});
