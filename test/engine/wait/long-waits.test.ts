import { openVirtualWorld } from '../../support/lock-world.js';
import { errorOf } from '../../support/section.js';

describe('a wait of more than 30 s', () => {
  const world = openVirtualWorld();

  it('is reported by one warning, which names the lock and its holder', async () => {
    const { locks, runtime, logger } = await world.process();
    const other = await world.process();
    const holder = await other.locks.acquire('order');
    const waiting = locks.acquire('order');
    await runtime.advance(29_000);
    expect(logger.warnings).toEqual([]);
    await runtime.advance(2_000);
    expect(logger.warnings).toEqual([
      expect.stringMatching(/^A caller has waited for the lock 'order' for over 30 s; held by /),
    ]);
    expect(logger.warnings[0]).toContain(holder.owner);
    await runtime.advance(300_000);
    expect(logger.warnings.length).toBe(1);
    await holder.release();
    await (await runtime.until(waiting)).release();
  });

  it('is reported by one warning for many waiters, even when this process holds the lock', async () => {
    const { locks, runtime, logger } = await world.process();
    const holder = await locks.acquire('order');
    const all = Array.from({ length: 10 }, () => locks.withLock('order', async () => {}));
    await runtime.advance(31_000);
    expect(logger.warnings).toEqual([
      expect.stringMatching(/^10 callers wait for the lock 'order', the longest for over 30 s; held by /),
    ]);
    expect(logger.warnings[0]).toContain(holder.owner);
    await holder.release();
    await runtime.until(Promise.all(all));
  });

  it('is reported by a warning for each further caller, at most once in 30 s, although the lock is never idle', async () => {
    const { locks, runtime, logger } = await world.process();
    const other = await world.process();
    const holder = await other.locks.acquire('order');
    const all = [locks.acquire('order')];
    await runtime.advance(31_000);
    expect(logger.warnings.length).toBe(1);
    await runtime.advance(1_000);
    all.push(locks.acquire('order'), locks.acquire('order'));
    await runtime.advance(70_000);
    expect(logger.warnings.length).toBe(2);
    expect(logger.warnings[1]).toMatch(/^3 callers wait for the lock 'order'/);
    await holder.release();
    for (const waiting of all) await (await runtime.until(waiting)).release();
  });

  it('is reported although callers come and go behind the one that waits', async () => {
    const { locks, runtime, logger } = await world.process();
    const other = await world.process();
    const holder = await other.locks.acquire('order');
    const waiting = locks.acquire('order');
    for (let i = 0; i < 40; i++) {
      const leaving = errorOf(locks.acquire('order', { waitTime: 1_500 }));
      await runtime.advance(1_000);
      void leaving;
    }
    await runtime.advance(1_000);
    expect(logger.warnings.length).toBe(1);
    await holder.release();
    await (await runtime.until(waiting)).release();
  });

  it('is not warned of when each caller waits for less', async () => {
    const { locks, runtime, logger } = await world.process();
    const body = () => new Promise<void>((resolve) => void runtime.timer(10_000, resolve));
    const all: Promise<void>[] = [];
    for (let i = 0; i < 20; i++) {
      all.push(locks.withLock('order', body));
      await runtime.advance(10_000);
    }
    await runtime.until(Promise.all(all));
    expect(logger.warnings).toEqual([]);
  });

  it('is reported in the next 30 s when the queue moves on meanwhile', async () => {
    const { locks, runtime, logger } = await world.process();
    const holder = await locks.acquire('order');
    const first = locks.acquire('order');
    await runtime.advance(5_000);
    const second = locks.acquire('order');
    await runtime.advance(20_000);
    await holder.release();
    const next = await runtime.until(first);
    await runtime.advance(34_000);
    expect(logger.warnings).toEqual([]);
    await runtime.advance(2_000);
    expect(logger.warnings).toEqual([
      expect.stringContaining(`A caller has waited for the lock 'order' for over 30 s`),
    ]);
    await next.release();
    await (await runtime.until(second)).release();
  });

  it('leaves no timer when the caller gives up', async () => {
    const { locks, runtime } = await world.process();
    const holder = await locks.acquire('order');
    const timers = runtime.timers;
    const late = errorOf(locks.acquire('order', { waitTime: 50 }));
    await runtime.advance(50);
    await late;
    expect(runtime.timers).toBe(timers);
    await holder.release();
  });
});

describe('a wait of more than 30 s for permits', () => {
  const world = openVirtualWorld();

  it('is reported with the processes that hold them', async () => {
    const { locks, runtime, logger } = await world.process();
    const other = await world.process();
    const taken = [locks, other.locks].map((each) => each.getPermitExpirableSemaphore('mail', { permits: 2 }));
    const ids = [await runtime.until(taken[0].acquire()), await runtime.until(taken[1].acquire())];
    const waiting = taken[0].acquire();
    await runtime.advance(31_000);
    expect(logger.warnings).toEqual([
      expect.stringMatching(
        /^A caller has waited for the semaphore 'mail' for over 30 s; 0 of 2 permits are available; held by /,
      ),
    ]);
    expect(logger.warnings[0]).toMatch(/held by (?=.*this process \(1\))(?=.*a client without a record \(1\))/);
    await runtime.until(taken[1].release(ids[1]));
    await runtime.until(waiting);
  });

  it('is reported without holders if the permits are only counted', async () => {
    const { locks, runtime, logger } = await world.process();
    const semaphore = locks.getSemaphore('mail', { permits: 1 });
    await runtime.until(semaphore.acquire());
    const waiting = [semaphore.acquire(), semaphore.acquire()];
    await runtime.advance(31_000);
    expect(logger.warnings).toEqual([
      "2 callers wait for the semaphore 'mail', the longest for over 30 s; 0 of 1 permits are available. Nobody knows who holds the others, because they have no leases",
    ]);
    await runtime.until(semaphore.release(2));
    await runtime.until(Promise.all(waiting));
  });

  it('is reported with its count for a latch', async () => {
    const { locks, runtime, logger } = await world.process();
    const latch = locks.getCountDownLatch('start');
    await runtime.until(latch.trySetCount(2));
    const waiting = latch.await();
    await runtime.advance(31_000);
    expect(logger.warnings).toEqual(["A caller has waited for the latch 'start' for over 30 s; its count is 2"]);
    await runtime.until(latch.countDown());
    await runtime.until(latch.countDown());
    await runtime.until(waiting);
  });

  it('is reported with its count for a latch that Redisson has created', async () => {
    const { locks, backend, runtime, logger } = await world.process();
    const latch = locks.getCountDownLatch('start');
    await runtime.until(latch.trySetCount(1));
    const { synchronizers } = backend;
    const inspect = synchronizers?.inspect?.bind(synchronizers);
    if (synchronizers === undefined || inspect === undefined) throw new Error('the backend must be able to inspect');
    // Redisson writes no note of the type.
    synchronizers.inspect = async (key) => {
      const state = await inspect(key);
      return state && { ...state, type: 'counter', total: undefined };
    };
    const waiting = latch.await();
    await runtime.advance(31_000);
    expect(logger.warnings).toEqual(["A caller has waited for the latch 'start' for over 30 s; its count is 1"]);
    await runtime.until(latch.countDown());
    await runtime.until(waiting);
  });
});
