import type { LockBusyError } from '../../../lib/engine/errors.js';
import { openVirtualWorld } from '../../support/lock-world.js';
import { errorOf } from '../../support/section.js';

const TYPES = ['reentrant', 'fenced', 'read', 'write', 'fair'] as const;

describe('the error of a caller that did not get the lock in time', () => {
  const world = openVirtualWorld();

  it.each(TYPES)('tells how long the lease of another process still lasts by now: type %s', async (type) => {
    const [holder, { locks, runtime }] = [await world.process(), await world.process()];
    const held = await holder.locks.acquire('page', { type: type === 'read' ? 'write' : type, leaseTime: '60s' });
    const refusal = errorOf(locks.acquire('page', { type, waitTime: '10s' }));
    const { remainingTime, holder: owner } = (await runtime.until(refusal)) as LockBusyError;
    expect(runtime.monotonic()).toBe(10_000);
    expect(remainingTime).toBe(50_000);
    expect(owner).toBe(held.owner);
    await held.release();
  });

  it.each(TYPES)('does not say that the lock was held for a negative time: type %s', async (type) => {
    const identity = { application: 'shop', host: 'web-1', pid: 7, version: '' };
    const { locks, runtime } = await world.process({ identity });
    runtime.block(0.4); // a clock need not show whole milliseconds
    for (const names of ['page', ['cover', 'page']]) {
      const held = await locks.acquire(names, { type: type === 'read' ? 'write' : type });
      const error = (await errorOf(locks.acquire('page', { type, waitTime: 0 }))) as LockBusyError;
      expect(error.holderClient?.heldFor).toBe(0);
      await held.release();
    }
  });
});
