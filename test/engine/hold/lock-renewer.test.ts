import type { LockEvents } from '../../../lib/engine/events/lock-events.js';
import { openVirtualWorld } from '../../support/lock-world.js';
import { refused } from '../../support/watched/watched-backend.js';

describe('a renewal', () => {
  const world = openVirtualWorld();

  it('that fails is announced each time, and leads to one warning until one succeeds', async () => {
    const { locks, backend, runtime, logger } = await world.process();
    const failures: LockEvents['renewalFailed'][] = [];
    locks.on('renewalFailed', (event) => failures.push(event));
    const lease = await locks.acquire('order', { group: 'payments' });
    backend.disturb(refused, 'renew');
    await runtime.advance(20_000);
    expect(failures.length).toBeGreaterThan(1);
    expect(failures[0]).toMatchObject({ name: 'order', group: 'payments', owner: lease.owner });
    const [first, second] = failures.map(({ remainingTime }) => remainingTime);
    expect(first).toBeLessThan(30_000);
    expect(second).toBeLessThan(first);
    expect(logger.warnings).toHaveLength(1);
    backend.heal();
    await runtime.advance(15_000);
    expect(lease.held).toBe(true);
    const announced = failures.length;
    backend.disturb(refused, 'renew');
    await runtime.advance(20_000);
    expect(failures.length).toBeGreaterThan(announced);
    expect(logger.warnings).toHaveLength(2);
    backend.heal();
    await runtime.advance(15_000);
    await lease.release();
  });
});
