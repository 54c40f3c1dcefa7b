import { setTimeout as sleep } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { LockLostError } from '../../../lib/engine/errors.js';
import { itOfIoredis } from '../../support/client-under-test.js';
import { type RedisSentinel, startSentinel } from '../../support/servers/redis-sentinel.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { machineTime } from '../history.js';
import { FaultRun } from './fault-run.js';
import { fault, ms, printFaultTable } from './fault-table.js';
import { leftInRedis } from './leftovers.js';

/** For a body that runs through the whole fault. */
const LONG_LEASE = { watchdogTimeout: 15_000 };

/** What users notice when Sentinel replaces a master. */
describe('Sentinel', () => {
  let sentinel: RedisSentinel;
  let run: FaultRun;

  beforeEach(async () => {
    sentinel = await startSentinel();
    run = await FaultRun.start({ connection: sentinel.options });
  }, 60_000);
  afterEach(async () => {
    await run.stop().catch(() => {});
    const left = await listenersOf(sentinel).finally(() => sentinel.stop());
    expect(left).toBe(0);
  });
  afterAll(printFaultTable);

  it('fails over in an orderly way: leases are kept or reported as lost', async () => {
    const locks = run.service(LONG_LEASE);
    const lease = await locks.acquire('mine');
    const old = await sentinel.master();
    const before = machineTime();
    // Until Sentinel turns it into a replica, which takes ten seconds, the old master continues to answer connected
    // clients.
    const left = until(() => isLeft(old), 30_000).then(() => machineTime() - before);
    await run.breaks(() => sentinel.failover());
    const away = machineTime() - before;
    const all = await left;
    expect(all - away).toBeLessThan(6_000);
    const resumed = await run.resumed();
    await run.busy();
    await lease.extend('15s').catch((error) => expect(error).toBeInstanceOf(LockLostError));
    const kept = lease.held;
    await lease.release().catch(() => {});
    const next = await locks.acquire('mine');
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await next.release();
    const report = await run.finish({ fenced: true });
    fault(
      'SENTINEL FAILOVER (orderly)',
      'a delay; leases that the new master does not have are reported as lost, fencing tokens grow',
      `failover took ${ms(away)}, all had left the old master ${ms(all)} after it began, served ${ms(resumed)} later; the held lease was ${kept ? 'kept' : 'lost, and reported'}; ${report.count('lost')} short leases ended meanwhile; ${run.errors}`,
    );
    expect(await leftInRedis(await sentinel.master())).toEqual([]);
  });

  it('replaces a master that was killed: what the replica has is kept, what it lacks is reported as lost, and tokens continue to grow', async () => {
    const locks = run.service(LONG_LEASE);
    const lease = await locks.acquire('mine');
    const before = machineTime();
    await run.breaks(() => sentinel.killMaster());
    const away = machineTime() - before;
    const resumed = await run.resumed();
    await run.busy();
    await lease.extend('15s').catch((error) => expect(error).toBeInstanceOf(LockLostError));
    await until(() => lease.held || lease.signal.aborted);
    const kept = lease.held;
    await lease.release().catch(() => {});
    const next = await locks.acquire('mine');
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await next.release();
    const report = await run.finish({ fenced: true });
    fault(
      'SIGKILL of the master, Sentinel fails over',
      'waited out; a lease that the replica had is kept, another one is reported as lost; fencing tokens grow',
      `new master after ${ms(away)}, served ${ms(resumed)} later; the held lease was ${kept ? 'kept' : 'lost, and reported'}; ${report.count('lost')} short leases ended meanwhile; ${run.errors}`,
    );
    expect(await leftInRedis(await sentinel.master())).toEqual([]);
  });

  it('with minReplicas, replaces a master without losing a lease', async () => {
    const locks = run.service({ ...LONG_LEASE, minReplicas: 2 });
    const leases = await Promise.all(Array.from({ length: 50 }, (_, i) => locks.acquire(`careful:${i}`)));
    await run.breaks(() => sentinel.killMaster());
    await run.resumed();
    await Promise.all(leases.map((lease) => lease.extend('15s')));
    expect(leases.filter((lease) => !lease.held)).toEqual([]);
    await Promise.all(leases.map((lease) => lease.release()));
    await run.finish({ fenced: true });
    fault(
      'SIGKILL of the master, Sentinel fails over, with `minReplicas` = all replicas',
      'a delay; no lease is lost',
      `${leases.length} of ${leases.length} leases kept`,
    );
    expect(await leftInRedis(await sentinel.master())).toEqual([]);
  });

  it('replaces a master that was stopped and comes back later: its leases are fenced', async () => {
    const old = await sentinel.master();
    await run.breaks(() => old.pause());
    const since = machineTime();
    await until(async () => (await masterOf(sentinel, old.port)) !== old.port, 30_000);
    const away = machineTime() - since;
    old.resume();
    const resumed = await run.resumed();
    await run.busy();
    // It answers earlier requests before it learns that it was replaced.
    await run.finish({ fenced: true, twoMasters: true });
    fault(
      'SIGSTOP of the master, Sentinel fails over, SIGCONT',
      'waited out; leases of the old master are reported as lost or kept by the new one; fencing tokens grow, but for 0.15 s',
      `failover after ${ms(away)}, served ${ms(resumed)} after SIGCONT; ${run.errors}`,
    );
  });

  it('replaces a master while a client connects to it: the client leaves it as soon as it is connected', async () => {
    await run.finish();
    const old = await sentinel.master();
    old.pause();
    // The old master answers nothing, so the client is still connecting when it gets the message. The long time-out
    // keeps the client from giving up meanwhile.
    const locks = run.service({ connection: { ...sentinel.options, socketTimeout: 60_000 } });
    const acquired = locks.acquire('mine').catch(() => {});
    await until(async () => (await listenersOf(sentinel)) === 3);
    await until(async () => (await masterOf(sentinel, old.port)) !== old.port, 30_000);
    const master = await sentinel.master();
    await sleep(200); // the client gets the message
    // Sooner or later, a Sentinel would make the old master close its connections.
    for (const each of sentinel.sentinels) each.pause();
    const since = machineTime();
    old.resume();
    await until(() => isLeft(old), 10_000).finally(() => {
      for (const each of sentinel.sentinels) each.resume();
    });
    const left = machineTime() - since;
    await (await acquired)?.release().catch(() => {});
    const lease = await locks.acquire('mine');
    expect(master).not.toBe(old);
    expect(await master.client().exists('lock:mine')).toBe(1);
    await lease.release();
    await locks.close();
    fault(
      'a client connects to a master that is stopped and is replaced meanwhile',
      'the client connects to the new one',
      `left the old master ${ms(left)} after SIGCONT`,
    );
  });

  itOfIoredis(
    'is listened to without log lines while one Sentinel is down, not by closed services, and only if the user allows it',
    async () => {
      await run.finish();
      const [away, ...others] = sentinel.sentinels;
      await away.kill();
      const printed = jest.spyOn(console, 'error').mockImplementation(() => {});
      const locks = run.service();
      await (await locks.acquire('mine')).release();
      await until(async () => (await listenersOf(sentinel)) === others.length);
      await away.start();
      await until(async () => (await listenersOf(sentinel)) === others.length + 1);
      await locks.close();
      await until(async () => (await listenersOf(sentinel)) === 0);
      await run.service().close();
      const without = run.service({ connection: { ...sentinel.options, failoverDetector: false } });
      await (await without.acquire('mine')).release();
      expect(await listenersOf(sentinel)).toBe(0);
      await without.close();
      expect(printed).not.toHaveBeenCalled();
      expect(run.log).toEqual([]);
      printed.mockRestore();
    },
  );
});

/** How many connections other than their own subscribe to the Sentinels that run. */
async function listenersOf({ sentinels }: RedisSentinel): Promise<number> {
  const running = sentinels.filter((sentinel) => sentinel.running);
  const lists = await Promise.all(running.map(clientsOf));
  return lists.flat().filter((line) => / name= .* sub=1 /.test(line)).length;
}

/**
 * The master according to the first Sentinel. The helper's own method would wait for an answer from the stopped server.
 */
async function masterOf(sentinel: RedisSentinel, otherwise: number): Promise<number> {
  const client = sentinel.sentinels[0].client();
  try {
    const address = (await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'mymaster')) as string[] | null;
    return address === null ? otherwise : Number(address[1]);
  } finally {
    client.disconnect();
  }
}

/** Whether only replicas, a master, Sentinels (which have names) and this client are still connected to it. */
async function isLeft(server: RedisServer): Promise<boolean> {
  return !(await clientsOf(server)).some((line) => / name= /.test(line) && !/ flags=[SM]/.test(line));
}

async function clientsOf(server: RedisServer): Promise<string[]> {
  const client = server.client({ connectionName: 'asks' });
  try {
    return String(await client.client('LIST'))
      .trim()
      .split('\n');
  } finally {
    client.disconnect();
  }
}
