import { allLocks } from '../../lib/cli/commands/all-locks.js';
import { createLockService } from '../../lib/service/create-lock-service.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { type RedisCluster, startCluster } from '../support/servers/redis-cluster.js';
import { until } from '../support/until.js';
import { runCli } from './run-cli.js';

describe('the command line on a cluster', () => {
  let cluster: RedisCluster;
  let locks: LockService;
  beforeAll(async () => {
    cluster = await startCluster();
    const logger = { warn: () => {}, error: () => {} };
    locks = createLockService({ connection: { nodes: cluster.nodes }, commandTimeout: '30s', logger });
  });
  afterAll(async () => {
    await locks?.close();
    await cluster?.stop();
  });

  it('shows the locks of all masters, and releases one', async () => {
    const names = Array.from({ length: 20 }, (_, n) => `order:${n}`);
    const leases = await Promise.all(names.map((name) => locks.acquire(name)));
    const { url } = cluster.servers[0];
    const list = JSON.parse((await runCli(['ls', '--cluster', '--json'], url)).stdout);
    expect(list.locks.map(({ name }: { name: string }) => name)).toEqual([...names].sort());
    const { code } = await runCli(['release', 'order:7', '--cluster', '--yes', '--reason', 'dead'], url);
    expect(code).toBe(0);
    expect(await locks.isLocked('order:7')).toBe(false);
    expect((await runCli(['inspect', 'order:7', '--cluster'], url)).code).toBe(3);
    expect((await runCli(['inspect', 'order:8', '--cluster'], url)).code).toBe(0);
    await Promise.allSettled(leases.map((lease) => lease.release())); // one of them is lost
  });

  it('refuses a node without --cluster: its list would lack most of the locks', async () => {
    const { code, stdout, stderr } = await runCli(['ls'], cluster.servers[0].url);
    expect(stderr).toMatch(/is a node of a cluster, and stores only some of the locks\. Add --cluster/);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });

  it('examines each master, and says which one is different', async () => {
    const [{ url }, second] = cluster.servers;
    const well = await runCli(['doctor', '--cluster'], url);
    expect(well.stdout).toMatch(/ok +cluster +all 16384 slots are served by 3 masters/);
    expect(well.stdout).toMatch(/ok +pub\/sub +messages arrive/);
    expect(well.stdout).not.toContain('WRONG');
    expect(well.code).toBe(0);

    const admin = second.client();
    await admin.call('ACL', 'SETUSER', 'default', '-hget', '-spublish');
    const { code, stdout } = await runCli(['doctor', '--cluster'], url);
    await admin.call('ACL', 'SETUSER', 'default', '+hget', '+spublish');
    expect(stdout).toContain(`127.0.0.1:${second.port}: user 'default' lacks +hget +spublish`);
    expect(code).toBe(5);
  });

  it('finds each master that has no memory left', async () => {
    const masters = cluster.servers.slice(0, 3);
    for (const master of masters) await master.client().config('SET', 'maxmemory', '1');
    const { code, stdout } = await runCli(['doctor', '--cluster', '--json'], masters[0].url);
    for (const master of masters) await master.client().config('SET', 'maxmemory', '0');
    const { checks } = JSON.parse(stdout) as { checks: { check: string; status: string; message: string }[] };
    const found = checks.filter(({ check }) => check === 'memory');
    expect(found).not.toEqual([]);
    for (const { status, message } of found)
      expect(`${status}: ${message}`).toMatch(/^wrong: Redis has no memory left/);
    expect(code).toBe(5);
  });

  it('begins the list anew if a master was replaced meanwhile', async () => {
    const names = Array.from({ length: 1_500 }, (_, n) => `many:${n}`);
    const client = cluster.client();
    await Promise.all(names.map((name) => client.hset(`lock:${name}`, 'somebody:1', '1')));
    let pages = 0;
    const list: LockService['list'] = async (options) => {
      const page = await locks.list(options);
      if (pages++ > 0) return page;
      await cluster.failover(0);
      await until(async () => {
        await locks.isLocked('{06S}'); // in slot 0, so that the service is sent to the new master
        return locks.list({ cursor: page.cursor }).then(
          () => false,
          ({ message }) => /the masters of the cluster have changed/.test(message),
        );
      });
      return page;
    };
    const all = await allLocks({ list }, 'many:*');
    expect(all.locks.map(({ name }) => name)).toEqual([...names].sort());
    expect(pages).toBeGreaterThan(3);
  });
});
