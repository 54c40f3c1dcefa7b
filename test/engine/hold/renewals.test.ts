import { ms, openVirtualWorld } from '../../support/lock-world.js';
import { latch } from '../../support/section.js';
import { answerAfter, refused } from '../../support/watched/watched-backend.js';

const LEASE = 30_000;

describe('the locks that a process holds', () => {
  const world = openVirtualWorld();

  /** A process, with the times at which it renews each lock. */
  const open = async (watchdogTimeout = LEASE) => {
    const process = await world.process({ watchdogTimeout: ms(watchdogTimeout) });
    const { backend, runtime } = process;
    const renewals: { readonly key: string; readonly at: number }[] = [];
    const note = (request: unknown) => {
      renewals.push({ key: (request as { key: string }).key.split(':').at(-1) as string, at: runtime.monotonic() });
    };
    backend.disturb(async (execute, request) => {
      note(request);
      return execute();
    }, 'renew');
    const timesOf = (key: string) => renewals.filter((each) => each.key === key).map(({ at }) => at);
    return { ...process, renewals, note, timesOf };
  };

  it('are renewed early together with another one, but not by more than a sixtieth of the lease', async () => {
    const { locks, runtime, timesOf } = await open();
    await locks.acquire('first');
    await runtime.advance(LEASE / 60);
    await locks.acquire('near');
    await runtime.advance(LEASE / 60 + 1_000);
    await locks.acquire('far');
    await runtime.advance(LEASE / 3 - 1_000);
    expect(timesOf('near')).toEqual(timesOf('first'));
    expect(timesOf('far')).toEqual([]);
    await runtime.advance(1_500);
    expect(timesOf('far')).toHaveLength(1);
  });

  it('are renewed in turns of 512, between which the event loop goes on', async () => {
    const { locks, runtime, renewals } = await open();
    await Promise.all(Array.from({ length: 1_100 }, (_, n) => locks.acquire(`order-${n}`)));
    const { nextTurn } = runtime;
    const turns: number[] = [];
    runtime.nextTurn = (callback) => {
      turns.push(renewals.length);
      return nextTurn.call(runtime, callback);
    };
    await runtime.advance(LEASE / 3 + 1_000);
    expect(renewals).toHaveLength(1_100);
    expect(turns.filter((count) => count > 0).slice(0, 2)).toEqual([512, 1_024]);
  });

  it.each([
    [300, 20, 25],
    [6_000, 300, 375],
    [300_000, 1_000, 1_250],
  ])('with a lease of %d ms are tried again after a pause of between %d and %d ms', async (lease, least, most) => {
    const { locks, backend, runtime, note, renewals } = await open(lease);
    await locks.acquire('order');
    backend.disturb((execute, request) => {
      note(request);
      return refused(execute, request);
    }, 'renew');
    await runtime.advance(lease / 3 + 4 * most);
    const times = renewals.map(({ at }) => at);
    const pause = times[1] - times[0];
    expect(pause).toBeGreaterThanOrEqual(least);
    expect(pause).toBeLessThanOrEqual(most + 1);
  });

  it('have an event for each renewal that fails, and one warning until one succeeds', async () => {
    const { locks, backend, runtime, logger } = await open();
    let failures = 0;
    locks.on('renewalFailed', () => failures++);
    await locks.acquire('order');
    backend.disturb(refused, 'renew');
    await runtime.advance(LEASE / 2);
    expect(failures).toBeGreaterThan(2);
    expect(logger.warnings).toHaveLength(1);
    backend.disturb((execute) => execute(), 'renew');
    await runtime.advance(LEASE);
    backend.disturb(refused, 'renew');
    await runtime.advance(LEASE / 2);
    expect(logger.warnings).toHaveLength(2);
  });

  it('are renewed in time while the renewal of another one gets no answer', async () => {
    const { locks, backend, runtime, note, timesOf } = await open();
    await locks.acquire('silent');
    await runtime.advance(2_000);
    const lease = await locks.acquire('order');
    const answer = latch();
    backend.disturb((execute, request) => {
      note(request);
      return (request as { key: string }).key.endsWith('silent')
        ? answerAfter(answer.promise)(execute, request)
        : execute();
    }, 'renew');
    await runtime.advance(LEASE);
    expect(timesOf('order').length).toBeGreaterThanOrEqual(2);
    expect(lease.held).toBe(true);
    answer.open();
  });

  it('are confirmed at once after an outage, if they were confirmed before', async () => {
    const { locks, backend, runtime, timesOf } = await open();
    await locks.acquire('before');
    await runtime.advance(1_000);
    backend.disturb(refused, 'acquire', 'ping');
    const waits = locks.acquire('other');
    waits.catch(() => {});
    await runtime.advance(4_000);
    expect(timesOf('before')).toEqual([]);
    backend.disturb((execute) => execute(), 'acquire', 'ping');
    await runtime.advance(2_000);
    expect(timesOf('before')).toHaveLength(1);
    await (await waits).release();
  });

  it('need one timer while their leases are fixed, and none when nothing is held', async () => {
    const { locks, runtime, renewals } = await open();
    const leases = [
      await locks.acquire('order', { leaseTime: '1h' }),
      await locks.acquire('stock', { leaseTime: '1h' }),
    ];
    await runtime.advance(60_000);
    expect(renewals).toEqual([]);
    for (const lease of leases) await lease.release();
    await runtime.advance(1_500);
    expect(runtime.timers).toBe(0);
  });

  it('are lost at the end of a fixed lease, also when the machine was suspended shortly before', async () => {
    const { locks, runtime } = await open();
    const lost: string[] = [];
    locks.on('lost', ({ name }) => lost.push(name));
    const lease = await locks.acquire('order', { leaseTime: '10s' });
    await runtime.advance(5_000);
    runtime.suspend(4_000);
    expect(lease.held).toBe(false);
    await runtime.advance(2_000);
    expect(lost).toEqual(['order']);
  });

  it('are lost for that reason if a fixed lease ended while the machine was suspended', async () => {
    const { locks, runtime } = await open();
    const lost: string[] = [];
    locks.on('lost', ({ error }) => lost.push(error.message));
    await locks.acquire('order', { leaseTime: '10s' });
    await runtime.advance(5_000);
    runtime.suspend(6_000);
    await runtime.advance(2_000);
    expect(lost).toEqual([
      expect.stringContaining('ended while the machine was suspended or after its clock was changed'),
    ]);
  });

  it('are asked about again and again before a body runs, after the clocks have diverged, until there is an answer', async () => {
    const { locks, backend, runtime } = await open();
    const lease = await locks.acquire('order');
    runtime.setWallClock(-3_600_000);
    backend.disturb(refused, 'renew');
    let hasRun = false;
    const run = lease.run(async () => {
      hasRun = true;
    });
    await runtime.advance(5_000);
    expect([hasRun, backend.count('renew') > 3, backend.count('renew') < 50]).toEqual([false, true, true]);
    backend.heal();
    await runtime.until(run);
    expect(hasRun).toBe(true);
  });

  it('are not renewed any more once the service is closed', async () => {
    const { locks, runtime, renewals } = await open();
    await locks.acquire('order');
    await runtime.until(locks.close());
    await runtime.advance(LEASE);
    expect(renewals).toEqual([]);
  });
});
