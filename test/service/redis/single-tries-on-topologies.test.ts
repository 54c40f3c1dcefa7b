import type { Connection } from '../../../lib/backends/redis/links/connection.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { isNodeRedis } from '../../support/client-under-test.js';
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js';
import { type RedisCluster, startCluster } from '../../support/servers/redis-cluster.js';
import { type RedisSentinel, startSentinel } from '../../support/servers/redis-sentinel.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { inTime } from './in-time.js';
import { TRIES } from './one-try-each.js';

const COMMAND_TIMEOUT = 2_000;

type Node = { readonly host: string; readonly port: number };
type AddressMap = Readonly<Record<string, Node>>;

describe('a call that tries once', () => {
  const proxies: TcpProxy[] = [];
  const opened: LockService[] = [];
  let cluster: RedisCluster;
  let sentinel: RedisSentinel;

  beforeAll(async () => {
    [cluster, sentinel] = await Promise.all([startCluster(), startSentinel()]);
  }, 60_000);
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((locks) => locks.close()));
    await Promise.all(proxies.splice(0).map((proxy) => proxy.stop()));
  });
  afterAll(() => Promise.all([cluster?.stop(), sentinel?.stop()]), 60_000);

  /** Puts a proxy in front of each server, and returns how clients find them. */
  const through = async (servers: readonly RedisServer[]): Promise<AddressMap> => {
    const pairs = servers.map(async ({ port }) => {
      const proxy = await startTcpProxy(port);
      proxies.push(proxy);
      return [`127.0.0.1:${port}`, { host: '127.0.0.1', port: proxy.port }] as const;
    });
    return Object.fromEntries(await Promise.all(pairs));
  };

  const topologies: [string, (map: AddressMap) => Connection][] = [
    ['a cluster by ioredis', (natMap) => ({ nodes: cluster.nodes, options: { natMap } })],
    [
      'a cluster by node-redis',
      (nodeAddressMap) => ({
        client: 'node-redis',
        rootNodes: cluster.nodes.map((socket) => ({ socket })),
        nodeAddressMap,
      }),
    ],
    ['Sentinels by ioredis', (natMap) => ({ ...sentinel.options, natMap })],
    [
      'Sentinels by node-redis',
      (nodeAddressMap) => ({
        client: 'node-redis',
        name: sentinel.options.name,
        sentinelRootNodes: sentinel.options.sentinels as Node[],
        nodeAddressMap,
      }),
    ],
  ];

  const tested = topologies.filter(([name]) => !(isNodeRedis && name.endsWith('by ioredis')));

  it.each(tested)('is made once more when a firewall has dropped the connections of %s', async (_, connection) => {
    const map = await through([...cluster.servers, ...sentinel.servers]);
    const locks = createLockService({
      connection: connection(map),
      commandTimeout: COMMAND_TIMEOUT,
      shutdownTimeout: 50,
      logger: { warn: () => {}, error: () => {} },
    });
    opened.push(locks);
    /** The tries that did not succeed, with their reasons. */
    const failed = async (): Promise<string[]> => {
      const outcomes = await Promise.all(
        Object.entries(TRIES).map(async ([name, attempt]) => {
          const outcome = await attempt(locks).catch((error: Error) => error.message);
          return outcome === true ? [] : [`${name}: ${outcome}`];
        }),
      );
      return outcomes.flat();
    };
    const lines = await inTime(async () => {
      await until(async () => (await failed()).length === 0);
      expect(proxies.some(({ live }) => live > 0)).toBe(true);
      for (const proxy of proxies) proxy.cutHalfOpen();
      for (const proxy of proxies) await proxy.heal();
      return failed();
    });
    expect(lines).toEqual([]);
  });
});
