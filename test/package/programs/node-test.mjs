// Run with the timers of node:test, which replace those of the module node:timers as well.
import assert from 'node:assert';
import { test } from 'node:test';
import { LockTestingController } from 'nestjs-redis-lock/testing';

for (const apis of [undefined, ['setTimeout', 'Date'], ['setTimeout', 'setImmediate']]) {
  test(`clock.advance() ends a lease, with mocks of ${apis ?? 'everything'}`, { timeout: 10_000 }, async (t) => {
    const testing = new LockTestingController();
    t.mock.timers.enable(apis && { apis });
    const lease = await testing.locks.acquire('order:42', { leaseTime: '30s' });
    await testing.clock.advance('31s');
    await testing.expectFree('order:42');
    assert(lease.signal.aborted);
  });
}

for (const apis of [undefined, ['setTimeout', 'Date']]) {
  test(`tick() ends a lease, with mocks of ${apis ?? 'everything'}`, { timeout: 10_000 }, async (t) => {
    const testing = new LockTestingController();
    t.mock.timers.enable(apis && { apis });
    const lease = await testing.locks.acquire('order:42', { leaseTime: '30s' });
    t.mock.timers.tick(31_000);
    await testing.expectFree('order:42');
    assert(lease.signal.aborted);
  });
}
