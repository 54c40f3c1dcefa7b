import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { Connection } from '../../../lib/service/redis-lock-options.js';
import { isNodeRedis } from '../../support/client-under-test.js';
import { type RedisCluster, startCluster } from '../../support/servers/redis-cluster.js';
import { startRedis } from '../../support/servers/redis-server.js';

const MASTERS = 3;
const DATABASE = 3;

/** Whether the server supports numbered databases in a cluster, as Valkey 9 does. */
async function hasClusterDatabases(): Promise<boolean> {
  try {
    await (await startRedis({ args: ['--cluster-enabled', 'yes', '--cluster-databases', '16'] })).stop();
    return true;
  } catch {
    return false;
  }
}

const connectionTo = ({ nodes }: RedisCluster, database: number): Connection =>
  (isNodeRedis
    ? {
        client: 'node-redis',
        rootNodes: nodes.map(({ host, port }) => ({ url: `redis://${host}:${port}` })),
        defaults: { database },
      }
    : { nodes, options: { redisOptions: { db: database } } }) as Connection;

const supported = await hasClusterDatabases();

(supported ? describe : describe.skip)('a cluster with numbered databases', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster(['--cluster-databases', '16']);
  });
  afterAll(() => cluster.stop());

  const service = (database: number) => {
    const locks = createLockService({ connection: connectionTo(cluster, database), watchdogTimeout: '30s' });
    closing.push(() => locks.close());
    return locks;
  };
  const closing: (() => Promise<void>)[] = [];
  afterEach(() => Promise.all(closing.splice(0).map((close) => close())));

  it('keeps locks in the database of the connection, on every master, and wakes waiters there', async () => {
    const [locks, others, elsewhere] = [service(DATABASE), service(DATABASE), service(0)];
    const names = Array.from({ length: 4 * MASTERS }, (_, i) => `order:${i}`);
    const leases = await Promise.all(names.map((name) => locks.acquire(name)));
    expect(await Promise.all(names.map((name) => others.tryAcquire(name)))).toEqual(names.map(() => null));
    // Another database is another place for locks.
    const unrelated = await Promise.all(names.map((name) => elsewhere.acquire(name, { waitTime: 5_000 })));
    const waiting = others.acquire(names[0]);
    await leases[0].release();
    await (await waiting).release();
    expect(await others.isLocked(names[1])).toBe(true);
    for (const lease of [...leases, ...unrelated]) await lease.release();
  });

  it('refuses a database that the cluster does not have, and says what to do', async () => {
    await expect(service(16).acquire('order', { waitTime: 5_000 })).rejects.toThrow(
      /database 16 cannot be used .*raise 'cluster-databases', which Valkey 9 has/,
    );
  });
});
