import { LockLostError, LockUnavailableError } from '../../../lib/engine/errors.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { type RedisCluster, startCluster } from '../../support/servers/redis-cluster.js';
import { until } from '../../support/until.js';
import { machineTime } from '../history.js';
import { CREWS, FaultRun } from './fault-run.js';
import { fault, ms, printFaultTable } from './fault-table.js';
import { leftInRedis } from './leftovers.js';
import type { Crew } from './load.js';

/** All names are in one slot, so that a migration or a failover concerns all of them. */
const IN_ONE_SLOT: readonly Crew[] = CREWS.map((crew) => ({ ...crew, name: `{slot}:${crew.name}` }));
/** For a body that runs through the whole fault. */
const LONG_LEASE = { watchdogTimeout: 10_000 };

/** What users notice when a cluster moves slots and replaces masters. */
describe('a cluster', () => {
  let cluster: RedisCluster;
  let slot: number;
  let run: FaultRun;

  beforeEach(async () => {
    cluster = await startCluster();
    slot = await cluster.slotOf('lock:{slot}:stock');
    run = await FaultRun.start({ connection: { nodes: cluster.nodes }, crews: IN_ONE_SLOT });
  }, 60_000);
  afterEach(async () => {
    await run.stop().catch(() => {});
    await cluster.stop();
  });
  afterAll(printFaultTable);

  async function nothingIsLeft(): Promise<void> {
    for (const server of cluster.servers.filter(({ running }) => running))
      expect(await leftInRedis(server)).toEqual([]);
  }

  it('moves the slot of held and waited-for locks: ASK, TRYAGAIN and MOVED go unnoticed', async () => {
    const lease = await run.service().acquire('{slot}:mine');
    const before = machineTime();
    await run.breaks(async () => {
      // While the slot's keys are on two nodes, a script with two keys, one of which is missing, gets TRYAGAIN.
      // Renewals have only one key.
      const move = await cluster.beginMove(slot);
      await move.migrate('lock:{slot}:mine');
      await lease.extend('5s');
      await until(() => machineTime() > before + 700);
      await move.finish();
    });
    const open = machineTime() - before;
    const resumed = await run.resumed();
    await run.busy();
    expect(lease.held).toBe(true);
    await lease.extend('5s');
    await lease.release();
    const report = await run.finish();
    expect(report.losses).toEqual([]);
    fault(
      'a cluster moves the slot of held locks (ASK, TRYAGAIN, MOVED)',
      'held leases are renewed and move along; new acquisitions wait until the slot has moved',
      `migration open for ${ms(open)}; 0 leases lost; served ${ms(resumed)} after it; ${run.errors}`,
    );
    await nothingIsLeft();
  });

  it('hands a master’s slots to its replica: no lease is lost', async () => {
    const lease = await run.service(LONG_LEASE).acquire('{slot}:mine');
    await run.breaks(() => cluster.failover(slot));
    const resumed = await run.resumed();
    await run.busy();
    await lease.extend('10s');
    expect(lease.held).toBe(true);
    await lease.release();
    const report = await run.finish();
    fault(
      'CLUSTER FAILOVER (orderly)',
      'a delay; nothing is lost',
      `${report.count('lost')} leases lost; served ${ms(resumed)} after it; ${run.errors}`,
    );
    await nothingIsLeft();
  });

  it('loses a master by SIGKILL: what its replica has is kept, what it lacks is reported as lost, and tokens continue to grow', async () => {
    const locks = run.service(LONG_LEASE);
    const lease = await locks.acquire('{slot}:mine');
    const before = machineTime();
    await run.breaks(() => cluster.killMaster(slot));
    const away = machineTime() - before;
    const resumed = await run.resumed();
    await run.busy();
    // Replication is asynchronous: either the lock is there, or it was forgotten and the loss is reported.
    await extended(lease).catch((error) => expect(error).toBeInstanceOf(LockLostError));
    await until(() => lease.held || lease.signal.aborted);
    const kept = lease.held;
    await lease.release().catch(() => {});
    const next = await locks.acquire('{slot}:mine');
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await next.release();
    const report = await run.finish({ fenced: true });
    fault(
      'SIGKILL of a cluster’s master',
      'waited out until its replica stands in; a lease that the replica had is kept, another one is reported as lost; fencing tokens grow',
      `replica stood in after ${ms(away)}, served ${ms(resumed)} later; the held lease was ${kept ? 'kept' : 'lost, and reported'}; ${report.count('lost')} short leases ended meanwhile; ${run.errors}`,
    );
    await nothingIsLeft();
  });

  it('with minReplicas, loses no lease to the SIGKILL of a master', async () => {
    const locks = run.service({ ...LONG_LEASE, minReplicas: 1 });
    const leases = await Promise.all(Array.from({ length: 50 }, (_, i) => locks.acquire(`{slot}:careful:${i}`)));
    // Nothing after the acquisitions, such as a pause, gives the replica more time than WAIT did.
    await run.breaks(() => cluster.killMaster(slot));
    await run.resumed();
    await Promise.all(leases.map(extended));
    expect(leases.filter((lease) => !lease.held)).toEqual([]);
    await Promise.all(leases.map((lease) => lease.release()));
    await run.finish({ fenced: true });
    fault(
      'SIGKILL of a cluster’s master, with `minReplicas: 1`',
      'a delay; no lease is lost',
      `${leases.length} of ${leases.length} leases kept`,
    );
    await nothingIsLeft();
  });
});

/** Extends the lease by 10 s. Shortly after a failover, an attempt may still meet the old master. */
function extended(lease: Lease): Promise<void> {
  return until(() =>
    lease.extend('10s').then(
      () => true,
      (error) => {
        if (error instanceof LockUnavailableError) return false;
        throw error;
      },
    ),
  );
}
