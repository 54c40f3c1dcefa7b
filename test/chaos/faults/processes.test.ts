import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { machineTime } from '../history.js';
import { FaultRun, LEASE } from './fault-run.js';
import { fault, ms, printFaultTable } from './fault-table.js';
import { leftInRedis } from './leftovers.js';

/** What happens to the work of other processes when a process that holds locks dies or is stopped. */
describe('a process that holds locks', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(async () => {
    printFaultTable();
    await redis.stop();
  });

  it('is killed: its locks expire with their leases, and the others continue', async () => {
    const run = await FaultRun.start({ connection: redis.url });
    const [victim] = run.processes;
    await until(() => run.report.holds(victim.spec.process, 'report'), 30_000);
    await run.breaks(() => victim.kill());
    await run.resumed();
    await run.busy();
    const report = await run.finish();
    const pause = Math.max(...['stock', 'queue', 'ledger', 'page', 'report'].map((name) => report.longestPause(name)));
    expect(pause).toBeLessThan(LEASE + 5_000);
    expect(run.errors).toBe('no errors');
    fault(
      'SIGKILL of a holder',
      'the next waiter is served when the lease ends; other names are not delayed',
      `longest pause of any lock ${ms(pause)} at a lease of ${ms(LEASE)}; ${run.errors}`,
    );
    expect(await leftInRedis(redis)).toEqual([]);
  });

  it('is stopped for longer than its leases: it regards them as ended, too, and reports the losses', async () => {
    const run = await FaultRun.start({ connection: redis.url });
    const [victim] = run.processes;
    const control = redis.client();
    const { process } = victim.spec;
    const since = machineTime();
    await run.breaks(async () => {
      for (;;) {
        await until(() => run.report.holds(process, 'report'), 30_000);
        run.freeze(victim);
        // A body that ends before the next heartbeat hears of the loss only by its release, when its process wakes.
        const { at = 0, owner = '' } = run.report.lastGrant(process, 'report') ?? {};
        const isEarly = machineTime() - at < LEASE / 5;
        // It may have released the lock before it was stopped.
        if (isEarly && (await control.hexists('lock:report', owner)) === 1) return;
        run.thaw(victim);
        await until(() => !run.report.holds(process, 'report'), 30_000);
      }
    });
    const frozenAt = machineTime();
    control.disconnect();
    await run.busy(200);
    const others = await run.service().acquire('report', { waitTime: '30s' });
    await until(() => machineTime() > frozenAt + LEASE * 1.5);
    await others.release();
    run.thaw(victim);
    const resumed = await run.resumed();
    await run.busy();
    const report = await run.finish();
    const lost = report.count('lost', since, process);
    expect(lost).toBeGreaterThan(0);
    fault(
      `SIGSTOP of a holder for longer than its lease, then SIGCONT`,
      'its bodies get `LockLostError` by `lease.signal` when it wakes; no two bodies with a valid lease',
      `${lost} leases lost and reported; works again ${ms(resumed)} after SIGCONT`,
    );
    expect(await leftInRedis(redis)).toEqual([]);
  });
});
