import { type RedisCluster, startCluster } from '../../support/servers/redis-cluster.js';
import { type RedisSentinel, startSentinel } from '../../support/servers/redis-sentinel.js';
import { refusedStart } from './refused-start.js';

describe('the process of an application that does not start', () => {
  let cluster: RedisCluster;
  let sentinel: RedisSentinel;
  const rootNodes = () => cluster.nodes.map((socket) => ({ socket }));
  const toNodeRedis = ({ name, sentinels }: RedisSentinel['options']) => ({
    client: 'node-redis' as const,
    name,
    sentinelRootNodes: sentinels as { host: string; port: number }[],
  });
  beforeAll(async () => {
    [cluster, sentinel] = await Promise.all([startCluster(), startSentinel()]);
  });
  afterAll(() => Promise.all([cluster?.stop(), sentinel?.stop()]));

  it.each([
    ['a cluster, with ioredis', () => ({ nodes: cluster.nodes })],
    ['a cluster, with node-redis', () => ({ client: 'node-redis' as const, rootNodes: rootNodes() })],
    ['Sentinels, with ioredis', () => sentinel.options],
    ['Sentinels, with node-redis', () => toNodeRedis(sentinel.options)],
  ])('ends, because our connections do not keep it alive: %s', async (_, connection) => {
    const ends = refusedStart(connection);
    await ends('onModuleInit of a provider', /no mail server/);
    await ends('onModuleInit, after locks were used', /no mail server/);
  });
});
