import { LockLostError } from '../../../lib/engine/errors.js';
import { openVirtualWorld } from '../../support/lock-world.js';
import { latch } from '../../support/section.js';
import { answerLost, refused } from '../../support/watched/watched-backend.js';

describe('a writer that reads in its own scope', () => {
  const world = openVirtualWorld();

  it('is followed by a writer with a higher token than its reader had', async () => {
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

  it('waits out an outage for its read lock', async () => {
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

  it('leaves no read lock behind whose answer was lost', async () => {
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

  it('keeps reading when an earlier reader gives back a lost read lock late', async () => {
    const { locks, backend, runtime } = await world.process();
    const write = await locks.acquire('page', { type: 'write' });
    const read = (leaseTime?: number) => write.run(() => locks.acquire('page', { type: 'read', leaseTime }));
    const first = await read(200);
    await runtime.advance(250);
    const arrived = latch();
    backend.disturb(async (execute) => {
      await arrived.promise;
      return execute();
    }, 'release');
    await expect(first.release()).rejects.toThrow(LockLostError);
    const second = await read();
    backend.heal();
    arrived.open();
    await runtime.settle();
    await write.release();
    expect(second.held).toBe(true);
    const other = await world.process();
    expect((await other.locks.tryAcquire('page', { type: 'write' }))?.owner).toBeUndefined();
    await second.release();
    expect(await other.locks.isLocked('page')).toBe(false);
  });

  it('keeps reading when an earlier reader gives back a lost read lock after the write lock', async () => {
    const { locks, runtime } = await world.process();
    const write = await locks.acquire('page', { type: 'write' });
    const first = await write.run(() => locks.acquire('page', { type: 'read', leaseTime: 200 }));
    await runtime.advance(250);
    const second = await write.run(() => locks.acquire('page', { type: 'read' }));
    await write.release();
    await expect(first.release()).rejects.toThrow(LockLostError);
    await runtime.settle();
    expect(second.held).toBe(true);
    const other = await world.process();
    expect((await other.locks.tryAcquire('page', { type: 'write' }))?.owner).toBeUndefined();
    await second.release();
    expect(await other.locks.isLocked('page')).toBe(false);
  });

  it('frees the lock when writer and reader have both released it, in either order', async () => {
    for (const writerFirst of [true, false]) {
      const { locks } = await world.process();
      const write = await locks.acquire('page', { type: 'write' });
      const reading = await write.run(() => locks.acquire('page', { type: 'read' }));
      await (writerFirst ? write : reading).release();
      await (writerFirst ? reading : write).release();
      expect(await locks.isLocked('page')).toBe(false);
    }
  });
});
