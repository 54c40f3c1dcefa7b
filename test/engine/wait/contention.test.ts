import { openVirtualWorld } from '../../support/lock-world.js';
import { latch } from '../../support/section.js';

describe('a process that contends for a lock with another one', () => {
  const world = openVirtualWorld();

  it('tries again when its subscription is confirmed, even while it lets others go first', async () => {
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
    // In its turn it finds the lock busy, and it is not notified of the release that follows.
    await runtime.advance(20);
    await otherLease.release();
    await runtime.settle();
    standing.open();
    const since = runtime.monotonic();
    const lease = await runtime.until(again);
    expect(runtime.monotonic() - since).toBeLessThan(1_000);
    await lease.release();
  });
});
