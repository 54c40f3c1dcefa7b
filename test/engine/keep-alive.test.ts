import { ms, openVirtualWorld } from '../support/lock-world.js';
import { errorOf } from '../support/section.js';
import { refused } from '../support/watched/watched-backend.js';

describe('timers', () => {
  const world = openVirtualWorld();

  it('do not keep a process alive that only holds locks', async () => {
    const { locks, runtime } = await world.process();
    const leases = [await locks.acquire('order'), await locks.acquire('stock', { leaseTime: '20s' })];
    await leases[0].extend('2m');
    await runtime.advance(1_000);
    expect(runtime.timers).toBeGreaterThan(0);
    expect(runtime.keepAliveTimers).toBe(0);
    for (const lease of leases) await lease.release();
  });

  it('keep a process alive in which a caller waits, however it waits', async () => {
    const { locks, runtime, backend } = await world.process();
    const other = await world.process();
    await other.locks.acquire('order', { leaseTime: '20s' });
    const abort = new AbortController();
    const { signal } = abort;
    const asleep = errorOf(locks.acquire('order', { signal }));
    await runtime.advance(100);
    expect(runtime.keepAliveTimers).toBe(1);
    const limited = errorOf(locks.acquire('order', { waitTime: '1s' }));
    expect(runtime.keepAliveTimers).toBe(2);
    abort.abort();
    await runtime.advance(1_000);
    await Promise.all([asleep, limited]);
    expect(runtime.keepAliveTimers).toBe(0);

    backend.disturb(refused, 'acquire', 'acquireAll');
    const again = new AbortController();
    const outage = errorOf(locks.acquire('stock', { signal: again.signal }));
    const several = errorOf(locks.acquire(['a', 'b'], { signal: again.signal }));
    await runtime.advance(30);
    expect(runtime.keepAliveTimers).toBe(2);
    again.abort();
    await Promise.all([outage, several]);
    expect(runtime.keepAliveTimers).toBe(0);
  });

  it('end when the waiter of a fair lock leaves during an outage', async () => {
    const { locks, runtime, backend } = await world.process();
    const leaving = new AbortController();
    backend.disturb(refused, 'acquire');
    const waiting = errorOf(locks.acquire('queue', { type: 'fair', signal: leaving.signal }));
    await runtime.advance(3_000); // from now on a second passes between two attempts
    expect(runtime.keepAliveTimers).toBe(1);
    leaving.abort();
    await waiting;
    expect(runtime.keepAliveTimers).toBe(0);
  });

  it('do not keep a process alive for releases in the background', async () => {
    const { locks, runtime, backend } = await world.process({ shutdownTimeout: ms(0) });
    const lease = await locks.acquire('order');
    backend.disturb(refused, 'release');
    await lease.release();
    await runtime.advance(300);
    expect(runtime.timers).toBeGreaterThan(0);
    expect(runtime.keepAliveTimers).toBe(0);
  });
});
