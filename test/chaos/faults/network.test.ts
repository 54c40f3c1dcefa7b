import { LockLostError, LockUnavailableError } from '../../../lib/engine/errors.js';
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js';
import { errorOf } from '../../support/section.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { machineTime } from '../history.js';
import { COMMAND_TIMEOUT, FaultRun, LEASE } from './fault-run.js';
import { fault, ms, printFaultTable } from './fault-table.js';
import { leftInRedis } from './leftovers.js';
import { lossOf } from './loss-of.js';

/**
 * What users notice of a bad network. All processes use one proxy, except a service that stands for the world outside.
 * The same faults are tested command by command in test/backends/redis/outages.test.ts, and in virtual time in
 * test/engine/outages/outages.test.ts.
 */
describe('the network', () => {
  let redis: RedisServer;
  let proxy: TcpProxy;
  let run: FaultRun;

  beforeAll(async () => {
    redis = await startRedis();
  });
  beforeEach(async () => {
    proxy = await startTcpProxy(redis.port);
    run = await FaultRun.start({ connection: proxy.url });
  });
  afterEach(async () => {
    await proxy.heal();
    await run.stop().catch(() => {});
    // The proxy notices closed connections a moment later.
    await until(() => proxy.live === 0, 5_000).catch(() => {});
    const { live } = proxy;
    // The server has not noticed the end of half-open connections, and would keep them until its own keep-alive finds
    // it.
    await proxy.stop();
    expect({ live, left: await leftInRedis(redis) }).toEqual({ live: 0, left: [] });
  });
  afterAll(async () => {
    printFaultTable();
    await redis?.stop();
  });

  it('is slow: everything takes longer, and nothing is lost', async () => {
    const locks = run.service();
    await run.breaks(() => proxy.delay(50));
    const since = machineTime();
    await (await locks.acquire('mine')).release();
    const took = machineTime() - since;
    await run.busy(50);
    await proxy.heal();
    const report = await run.finish();
    expect(report.losses).toEqual([]);
    expect(took).toBeGreaterThanOrEqual(200);
    fault('proxy delays 50 ms each way', 'slower', `acquire + release in ${ms(took)}; 0 leases lost; ${run.errors}`);
  });

  it('is cut half-open for less than a lease: connections are opened again, and nothing is lost', async () => {
    // The lease is longer than a slow machine takes to reconnect.
    const lease = await run.service({ watchdogTimeout: 20_000 }).acquire('mine');
    await run.breaks(() => proxy.cutHalfOpen());
    const since = machineTime();
    await until(() => machineTime() > since + COMMAND_TIMEOUT);
    await proxy.heal();
    const resumed = await run.resumed();
    await run.busy();
    expect(lease.held).toBe(true);
    await lease.release();
    await run.finish();
    expect(resumed).toBeLessThan(10_000);
    fault(
      `half-open connections for ${ms(COMMAND_TIMEOUT)}, less than a lease`,
      'a delay: silent connections are replaced after `commandTimeout`; the held lease stays',
      `served ${ms(resumed)} after the network was back; ${run.errors}`,
    );
  });

  it('is cut half-open for longer than a lease: it notices the loss in time, and others get the lock', async () => {
    const outside = run.service({ connection: redis.url });
    const locks = run.service();
    const lease = await locks.acquire('mine');
    const lost = lossOf(lease);
    const next = outside.acquire('mine').then((taken) => ({ taken, at: machineTime() }));
    await run.breaks(() => proxy.cutHalfOpen());
    const since = machineTime();
    const noticed = await lost;
    const { taken, at } = await next;
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(noticed).toBeLessThanOrEqual(at);
    expect(taken.fencingToken).toBeGreaterThan(lease.fencingToken);
    await taken.release();
    const asked = machineTime();
    expect(await errorOf(locks.acquire('other', { waitTime: 200 }))).toBeInstanceOf(LockUnavailableError);
    const refused = machineTime() - asked;
    await proxy.heal();
    const resumed = await run.resumed();
    await run.busy();
    await lease.release().catch(() => {});
    await run.finish();
    fault(
      'half-open connections for longer than a lease',
      '`LockLostError` by `lease.signal` before others can get the lock; `waitTime` is kept: `LockUnavailableError`',
      `noticed ${ms(noticed - since)} after the cut at a lease of ${ms(LEASE)}, ${ms(at - noticed)} before the next owner had it; \`waitTime: 200\` refused after ${ms(refused)}; served ${ms(resumed)} after the network was back`,
    );
  });

  it('is down: connections are refused until it is back', async () => {
    await run.breaks(() => proxy.refuse());
    const since = machineTime();
    await until(() => machineTime() > since + COMMAND_TIMEOUT);
    await proxy.heal();
    const resumed = await run.resumed();
    await run.busy();
    const report = await run.finish();
    expect(report.losses).toEqual([]);
    fault(
      `connections refused for ${ms(COMMAND_TIMEOUT)}`,
      'waited out; `waitTime: 0`: `LockUnavailableError`',
      `0 leases lost; served ${ms(resumed)} after it was back; ${run.errors}`,
    );
  });

  it('drops the answers to executed commands: each takes effect once', async () => {
    await run.breaks(() => {});
    for (let round = 0; round < 5; round++) {
      const dropped = proxy.droppedReplies;
      proxy.dropReplies({ after: /evalsha/i, close: true });
      await until(() => proxy.droppedReplies >= dropped + 3);
      await proxy.heal();
      await run.resumed();
    }
    await run.busy();
    const report = await run.finish();
    expect(report.losses).toEqual([]);
    expect(run.errors).not.toMatch(/Lost|NotOwned/);
    fault(
      'proxy drops replies of executed commands, and closes the connection',
      'nothing: commands are sent again and recognised; a release that was executed twice counts as a release',
      `${proxy.droppedReplies} replies dropped; 0 leases lost; ${run.errors}`,
    );
  });

  it('drops answers and stays open: calls give up after the command time-out, and nothing stays locked', async () => {
    await run.breaks(() => proxy.dropReplies({ after: /evalsha/i }));
    const since = machineTime();
    await until(() => machineTime() > since + COMMAND_TIMEOUT);
    await proxy.heal();
    const resumed = await run.resumed();
    await run.busy();
    await run.finish();
    expect(resumed).toBeLessThan(LEASE + 10_000);
    fault(
      `proxy drops all replies for ${ms(COMMAND_TIMEOUT)}, connections stay open`,
      'a delay; `waitTime: 0`: `LockUnavailableError`; locks without a caller are given back',
      `served ${ms(resumed)} after it healed; ${run.errors}`,
    );
  });
});
