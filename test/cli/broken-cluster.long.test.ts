import { createLockService } from '../../lib/service/create-lock-service.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { type RedisCluster, startCluster } from '../support/servers/redis-cluster.js';
import type { RedisServer } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';
import { runCli, startCli } from './run-cli.js';

const logger = { warn: () => {}, error: () => {} };

const EVERY_COMMAND = [
  ['ls'],
  ['inspect', 'order:42'],
  ['clients'],
  ['release', 'order:42', '--yes', '--reason', 'dead'],
];

describe('the command line on a cluster that is not ok', () => {
  let cluster: RedisCluster;
  let locks: LockService;
  let asked: RedisServer;
  let dead: RedisServer;
  let slot: number;
  beforeAll(async () => {
    cluster = await startCluster();
    locks = createLockService({ connection: { nodes: cluster.nodes }, logger });
    await locks.acquire('order:42', { leaseTime: '10m' });
    slot = await cluster.slotOf('lock:order:42');
    dead = await cluster.masterOf(slot);
    const replica = await cluster.replicaOf(slot);
    asked = cluster.servers.find((server) => server !== dead && server !== replica) as RedisServer;
    await replica.kill();
    await dead.kill();
    await until(async () => (await asked.client().cluster('INFO')).includes('cluster_state:fail'), 30_000);
  }, 90_000);
  afterAll(async () => {
    await locks?.close();
    await cluster?.stop();
  });

  it('doctor names the slots that nobody serves, and their node; it examines the others', async () => {
    const { code, stdout } = await runCli(['doctor', '--cluster'], asked.url);
    const [from, to] = [Math.floor(slot / 5462) * 5462, Math.min(16_383, Math.floor(slot / 5462) * 5462 + 5461)];
    expect(stdout).toMatch(
      new RegExp(
        `WRONG +cluster +\\d+ of 16384 slots have no master that answers: ${from}-${to} \\(127\\.0\\.0\\.1:${dead.port}\\)`,
      ),
    );
    expect(stdout).toMatch(/start that node, or fail over to a replica of it: CLUSTER FAILOVER TAKEOVER/);
    expect(stdout).toMatch(/note +scripts +not known: CLUSTERDOWN.*\n +→ see the 'cluster' check/);
    expect(code).toBe(5);
    const document = JSON.parse((await runCli(['doctor', '--cluster', '--json'], asked.url)).stdout);
    expect(document.fit).toBe(false);
    expect(document.checks).toContainEqual(expect.objectContaining({ check: 'cluster', status: 'wrong' }));
  });

  it.each(EVERY_COMMAND)('%s ends with 4, and says which command shows more', async (...args) => {
    const { code, stdout, stderr } = await runCli([...args, '--cluster'], asked.url);
    expect(stderr).toMatch(/CLUSTERDOWN|cannot be reached|ECONNREFUSED|no answer/);
    expect(stderr).toMatch(/'doctor --cluster' shows which slots and nodes are missing/);
    expect({ code, stdout }).toEqual({ code: 4, stdout: '' });
    const document = JSON.parse((await runCli([...args, '--cluster', '--json'], asked.url)).stdout);
    expect(document.error.kind).toBe('unavailable');
  });

  it('watch shows no list that lacks the locks of a master', async () => {
    const child = startCli(['watch', '--interval', '200ms', '--cluster'], asked.url);
    const ended = new Promise((resolve) => child.once('close', resolve));
    let text = '';
    child.stdout.on('data', (data) => {
      text += data;
    });
    await until(() => text.split('\n\n').length > 4, 60_000);
    child.kill('SIGINT');
    expect(await ended).toBe(0);
    expect(text).not.toContain('locks held');
  });

  it('inspect shows a lock whose slot is served, where the cluster permits it', async () => {
    for (const server of cluster.servers.filter(({ running }) => running))
      await server.client().config('SET', 'cluster-require-full-coverage', 'no');
    await until(async () => (await asked.client().cluster('INFO')).includes('cluster_state:ok'), 30_000);
    const names = Array.from({ length: 50 }, (_, n) => `other:${n}`);
    const slots = await Promise.all(names.map((name) => asked.client().cluster('KEYSLOT', `lock:${name}`)));
    const served = names.find((_, n) => Math.floor(slots[n] / 5462) !== Math.floor(slot / 5462)) as string;
    const lease = await locks.acquire(served);
    const { code, stdout, stderr } = await runCli(['inspect', served, '--cluster'], asked.url);
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: expect.stringContaining(`${served} is locked`),
      stderr: '',
    });
    expect((await runCli(['ls', '--cluster'], asked.url)).code).toBe(4);
    await lease.release();
  });
});

describe('the command line on a cluster with slots that belong to no node', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  }, 90_000);
  afterAll(() => cluster?.stop());

  it('doctor names them, even if no slot belongs to any', async () => {
    const [{ url }] = cluster.servers;
    await Promise.all(
      cluster.servers.map((server) => server.client().call('CLUSTER', 'DELSLOTSRANGE', '100', '200', '300', '300')),
    );
    const some = await runCli(['doctor', '--cluster'], url);
    expect(some.stdout).toMatch(/WRONG +cluster +102 of 16384 slots belong to no node: 100-200, 300\n/);
    expect(some.code).toBe(5);
    const { code, stderr } = await runCli(['ls', '--cluster'], url);
    expect(stderr).toMatch(/'doctor --cluster' shows which/);
    expect(code).toBe(4);

    await Promise.all(
      cluster.servers.map((server) =>
        server.client().call('CLUSTER', 'DELSLOTSRANGE', '0', '99', '201', '299', '301', '16383'),
      ),
    );
    const none = await runCli(['doctor', '--cluster'], url);
    expect(none.stdout).toMatch(/WRONG +cluster +16384 of 16384 slots belong to no node: 0-16383\n/);
    expect(none.code).toBe(5);
    expect((await runCli(['ls', '--cluster'], url)).code).toBe(4);
  });
});
