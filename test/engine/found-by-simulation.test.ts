import { LockLostError } from '../../lib/engine/errors.js';
import { ms, openVirtualWorld } from '../support/lock-world.js';
import { errorOf, latch } from '../support/section.js';
import { answerLost, refused } from '../support/watched-backend.js';

/** What broke in schedules of test/chaos/simulation, as small as it can be told. */
describe('the engine', () => {
  const world = openVirtualWorld();

  it('looks again when its subscription stands, also while it lets others go first', async () => {
    const { locks, backend, runtime } = await world.process();
    const other = await world.process();
    const first = await locks.acquire('order');
    const waiting = other.locks.acquire('order');
    await runtime.settle();
    const standing = latch();
    backend.delaySubscriptions(standing.promise);
    await first.release();
    const again = locks.acquire('order');
    const otherLease = await runtime.until(waiting);
    // Its turn comes, and it finds the lock busy; of the release that follows it hears nothing.
    await runtime.advance(20);
    await otherLease.release();
    await runtime.settle();
    standing.open();
    const since = runtime.monotonic();
    const lease = await runtime.until(again);
    expect(runtime.monotonic() - since).toBeLessThan(1_000);
    await lease.release();
  });

  it('tells a body with holdAtLeast that its lease had ended', async () => {
    const { locks, runtime } = await world.process();
    const lease = await locks.acquire('order', { leaseTime: 400 });
    const done = locks.holdWhile(
      lease,
      async () => {
        runtime.suspend(2_000);
      },
      { holdAtLeast: ms(5_000) },
    );
    expect(await errorOf(done)).toBeInstanceOf(LockLostError);
  });

  it('tells a body with holdAtLeast that somebody has freed its lock', async () => {
    const { locks, runtime } = await world.process();
    const other = await world.process();
    const lease = await locks.acquire('order');
    const done = locks.holdWhile(lease, async () => void (await other.locks.forceRelease('order')), {
      holdAtLeast: ms(5_000),
    });
    expect(await errorOf(runtime.until(done))).toBeInstanceOf(LockLostError);
  });

  it('gives a writer after one that read too a higher token than the reader had', async () => {
    const { locks, runtime } = await world.process();
    const first = await locks.acquire('page', { type: 'write' });
    const waiters = [0, 1].map(() => locks.acquire('page', { type: 'write' }));
    await first.release();
    const second = await runtime.until(waiters[0]);
    await runtime.advance(1);
    const reading = await second.run(() => locks.acquire('page', { type: 'read' }));
    await reading.release();
    await second.release();
    const third = await runtime.until(waiters[1]);
    expect(third.fencingToken).toBeGreaterThan(reading.fencingToken);
    await third.release();
  });

  it('waits out an outage for the read lock of a writer', async () => {
    const { locks, backend, runtime } = await world.process();
    const write = await locks.acquire('page', { type: 'write' });
    backend.disturb(refused, 'acquire');
    const reading = write.run(() => locks.acquire('page', { type: 'read' }));
    await runtime.advance(3_000);
    backend.heal();
    await (await runtime.until(reading)).release();
    await write.release();
    expect(await locks.isLocked('page')).toBe(false);
  });

  it('leaves no read lock behind that a writer may have got without an answer', async () => {
    const { locks, backend, runtime } = await world.process();
    const write = await locks.acquire('page', { type: 'write' });
    backend.disturb(answerLost, 'acquire');
    const reading = write.run(() => locks.acquire('page', { type: 'read', waitTime: 200 }));
    await expect(runtime.until(reading)).rejects.toThrow('could not be acquired');
    expect(runtime.monotonic()).toBeLessThan(1_000);
    await write.release();
    await runtime.settle();
    expect(await locks.isLocked('page')).toBe(false);
  });

  it('frees the lock when a writer and the reader in it are done, in either order', async () => {
    for (const writerFirst of [true, false]) {
      const { locks } = await world.process();
      const write = await locks.acquire('page', { type: 'write' });
      const reading = await write.run(() => locks.acquire('page', { type: 'read' }));
      await (writerFirst ? write : reading).release();
      await (writerFirst ? reading : write).release();
      expect(await locks.isLocked('page')).toBe(false);
    }
  });

  it('gives a body no read lock once shutdown has cut it off', async () => {
    const { locks, runtime } = await world.process();
    const body = latch();
    const asked = locks.withLock('page', { type: 'write' }, async () => {
      await body.promise;
      return errorOf(locks.acquire('page', { type: 'read' }));
    });
    await runtime.settle();
    await runtime.until(locks.close());
    body.open();
    expect(await runtime.until(asked.catch((error: Error) => error))).toMatchObject({ name: 'LockAbortedError' });
  });

  it('counts on a lease that it makes shorter for no longer than that, also before it has the answer', async () => {
    const { locks, backend, runtime } = await world.process();
    const lease = await locks.acquire('order', { leaseTime: 1_000 });
    backend.disturb(answerLost, 'renew');
    const extended = errorOf(lease.extend(100));
    expect(lease.remainingTime()).toBeLessThanOrEqual(100);
    await runtime.advance(110);
    expect(lease.held).toBe(false);
    await runtime.advance(5_000);
    await extended;
  });
});
