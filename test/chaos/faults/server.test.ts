import { LockLostError, LockUnavailableError } from '../../../lib/engine/errors.js';
import { errorOf } from '../../support/section.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { machineTime } from '../history.js';
import { COMMAND_TIMEOUT, FaultRun, LEASE } from './fault-run.js';
import { fault, ms, printFaultTable } from './fault-table.js';
import { leftInRedis } from './leftovers.js';
import { lossOf } from './loss-of.js';

/** What users notice of a single Redis that dies, is stopped, or has to load its data first. */
describe('the Redis server', () => {
  let redis: RedisServer;
  let run: FaultRun;

  beforeEach(async () => {
    // Each key takes a while to load. Meanwhile, clients are answered with LOADING.
    const slowly = ['--key-load-delay', '400', '--loading-process-events-interval-bytes', '1024'];
    redis = await startRedis({ args: [...slowly, '--enable-debug-command', 'yes'] });
    run = await FaultRun.start({ connection: redis.url });
  });
  afterEach(() => redis.stop());
  afterAll(printFaultTable);

  it('is killed and comes back without its data: leases are reported as lost, waiters wait until it is back, tokens continue to grow', async () => {
    const locks = run.service();
    const lease = await locks.acquire('mine');
    const lost = lossOf(lease);
    const before = machineTime();
    await run.breaks(() => redis.kill());
    const since = machineTime();
    expect(await errorOf(locks.acquire('other', { waitTime: 0 }))).toBeInstanceOf(LockUnavailableError);
    const refused = machineTime() - since;
    await redis.start();
    const resumed = await run.resumed();
    const noticed = (await lost) - before;
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    const next = await locks.acquire('mine');
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await next.release();
    expect(await errorOf(lease.release())).toBeInstanceOf(LockLostError);
    await run.busy();
    await run.finish({ fenced: true });
    expect(noticed).toBeLessThan(LEASE + 5_000);
    expect(refused).toBeLessThan(COMMAND_TIMEOUT + 3_000);
    fault(
      'SIGKILL of a Redis without persistence, then a restart',
      'held leases: `LockLostError` by `lease.signal`; waiters wait until it is back; `waitTime: 0`: `LockUnavailableError`; fencing tokens continue to grow',
      `noticed ${ms(noticed)} after the kill at a lease of ${ms(LEASE)}; unavailable after ${ms(refused)}; served ${ms(resumed)} after the restart`,
    );
    expect(await leftInRedis(redis)).toEqual([]);
  });

  it('is stopped for less than a lease: nothing is lost', async () => {
    const lease = await run.service().acquire('mine');
    await run.breaks(() => redis.pause());
    const since = machineTime();
    await until(() => machineTime() > since + COMMAND_TIMEOUT * 1.6);
    redis.resume();
    const resumed = await run.resumed();
    await run.busy();
    expect(lease.held).toBe(true);
    await lease.release();
    const report = await run.finish();
    expect(report.losses).toEqual([]);
    expect(run.errors).not.toContain('LockLostError');
    fault(
      `SIGSTOP of Redis for ${ms(COMMAND_TIMEOUT * 1.6)}, less than a lease`,
      'nothing but a delay; `waitTime: 0`: `LockUnavailableError`',
      `0 leases lost; served ${ms(resumed)} after SIGCONT; ${run.errors}`,
    );
    expect(await leftInRedis(redis)).toEqual([]);
  });

  it('is stopped for longer than a lease: the holder loses the lease first, although it cannot ask Redis', async () => {
    const locks = run.service();
    const lease = await locks.acquire('mine');
    const lost = lossOf(lease);
    await run.breaks(() => redis.pause());
    const since = machineTime();
    const noticed = (await lost) - since;
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(lease.held).toBe(false);
    const asked = machineTime();
    expect(await errorOf(locks.acquire('other', { waitTime: 0 }))).toBeInstanceOf(LockUnavailableError);
    const refused = machineTime() - asked;
    redis.resume();
    const resumed = await run.resumed();
    await run.busy();
    await lease.release().catch(() => {});
    await run.finish();
    expect(noticed).toBeGreaterThan(LEASE * 0.5);
    expect(noticed).toBeLessThan(LEASE + 3_000);
    fault(
      'SIGSTOP of Redis for longer than a lease',
      '`LockLostError` by `lease.signal` before the lease can end in Redis; `waitTime: 0`: `LockUnavailableError` after `commandTimeout`',
      `noticed ${ms(noticed)} after the stop at a lease of ${ms(LEASE)}; unavailable after ${ms(refused)}; served ${ms(resumed)} after SIGCONT`,
    );
    expect(await leftInRedis(redis)).toEqual([]);
  });

  it('has to load its data first: calls wait until it is loaded', async () => {
    const client = redis.client();
    await client.call('DEBUG', 'POPULATE', '4000', 'filler');
    await client.call('SAVE');
    await run.breaks(() => redis.kill());
    const locks = run.service();
    const started = redis.start();
    await until(() => loading(redis));
    const error = await errorOf(locks.acquire('other', { waitTime: 0 }));
    expect(error).toBeInstanceOf(LockUnavailableError);
    // On a busy machine, loading takes longer than callers wait for by default (outageTimeout: 10 s).
    const waiting = locks.acquire('other', { outageTimeout: '1m' });
    await started;
    const resumed = await run.resumed();
    const lease = await waiting;
    await lease.release();
    await run.busy();
    await run.finish({ fenced: true });
    await client.eval("for _, key in ipairs(redis.call('KEYS', 'filler:*')) do redis.call('DEL', key) end", 0);
    fault(
      'Redis answers LOADING after a restart',
      'waited out; `waitTime: 0`: `LockUnavailableError`',
      `served ${ms(resumed)} after it was loaded; ${run.errors}`,
    );
    expect(await leftInRedis(redis)).toEqual([]);
  });
});

/** Whether it answers that it is loading. */
async function loading(redis: RedisServer): Promise<boolean> {
  const client = redis.client({ enableReadyCheck: false, retryStrategy: () => null, maxRetriesPerRequest: 0 });
  try {
    return await client.get('x').then(
      () => false,
      (error: Error) => error.message.startsWith('LOADING'),
    );
  } finally {
    client.disconnect();
  }
}
