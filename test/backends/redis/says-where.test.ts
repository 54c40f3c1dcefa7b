import type { TcpNetConnectOpts } from 'node:net';
import { createClient, createCluster } from '@redis/client';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import type { Connection } from '../../../lib/backends/redis/links/connection.js';
import { checkCluster, checkRedisOptions } from '../../../lib/backends/redis/links/ioredis/check-ioredis-options.js';
import { checkNodeRedisOptions } from '../../../lib/backends/redis/links/node-redis/check-node-redis-options.js';
import { LockConfigurationError } from '../../../lib/engine/errors.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';

const silent = { warn: () => {}, error: () => {} };
const node = { client: 'node-redis' } as const;

describe('a connection', () => {
  it.each<[string, unknown, RegExp]>([
    [
      'is empty',
      {},
      /does not say where Redis is, because it is empty: ioredis takes host, port, path, sentinels\. Is a/,
    ],
    [
      'has undefined settings',
      { host: undefined, port: undefined },
      /because it is empty.*environment variable missing/,
    ],
    [
      'has no place',
      { password: 'p', db: 3 },
      /does not say where Redis is, but has 'password', 'db': ioredis takes host/,
    ],
    [
      'has a misspelt place',
      { hots: 'x', port: 6379 },
      /has 'hots', which ioredis would ignore: did you mean 'host'\?/,
    ],
    ['is of another library', { type: 'single', url: 'redis://h' }, /'url', which ioredis would ignore: give the URL/],
    ['names a client that does not exist', { client: 'ioredis', host: 'h' }, /only client that can be named is/],
    ['has the TLS of another library', { host: 'h', ssl: true }, /ioredis calls it tls/],
    ['has the database of another library', { host: 'h', database: 2 }, /ioredis calls it db/],
    ['is a mock', { get() {}, set() {} }, /has 'get', 'set': .*If this is a mock: in tests, use backend: 'memory'/],
    ['is a mock of a client with a place', { host: () => 'h' }, /If this is a mock/],
    [
      'has a cluster node without a place',
      { nodes: [{ password: 'p' }] },
      /A cluster node .* does not say where Redis is/,
    ],
    ['has a cluster node with a misspelt place', { nodes: [{ hots: 'x' }] }, /cluster node .* has 'hots'.*'host'\?/],
    [
      'of a cluster has names of other libraries',
      { nodes: [1], options: { redisOptions: { ssl: {} } } },
      /calls it tls/,
    ],
    ['of node-redis has no place', { ...node, database: 3 }, /but has 'database': node-redis takes url, socket\. Is a/],
    ['of node-redis has a place of ioredis', { ...node, host: 'h' }, /has 'host'.*in socket: { host, port, path/],
    ['of node-redis has a misspelt place', { ...node, socket: { hots: 'x' } }, /socket .* did you mean 'host'\?/],
    ['of node-redis has the place of a browser', { ...node, socket: { hostname: 'x' } }, /node-redis calls it host/],
    ['of node-redis is a mock', { ...node, get() {} }, /has 'get': .*If this is a mock/],
    [
      'of node-redis has a root node without a place',
      { ...node, rootNodes: [{ hots: 'x' }] },
      /root node .* where Redis is/,
    ],
    ['of node-redis has a default of ioredis', { ...node, rootNodes: [{}], defaults: { db: 1 } }, /calls it database/],
    [
      'of node-redis has a setting of ioredis for masters',
      { ...node, name: 'm', sentinelRootNodes: [{ host: 'h', port: 1 }], nodeClientOptions: { db: 3 } },
      /nodeClientOptions .* calls it database/,
    ],
  ])('that %s is refused, with what to do', (_, connection, message) => {
    const service = () => createLockService({ connection: connection as Connection, logger: silent });
    expect(service).toThrow(LockConfigurationError);
    expect(service).toThrow(message);
  });

  it('may be a copy of the options of a client of ioredis', () => {
    const [six, five] = [new Redis({ lazyConnect: true }), new Redis5({ lazyConnect: true })];
    for (const { options } of [six, five]) checkRedisOptions(options as RedisOptions);
    const cluster = new Cluster([7_000], { lazyConnect: true });
    checkCluster({ nodes: [7_000], options: cluster.options });
    for (const client of [six, five, cluster]) client.disconnect();
  });

  it('may be a copy of the options of a client of node-redis', () => {
    const { options: copy } = createClient({ url: 'redis://h', name: 'locks', pingInterval: 1 });
    checkNodeRedisOptions(copy as object);
    const options = {
      rootNodes: [{ url: 'redis://h' }],
      defaults: { socket: { host: 'h' } },
      minimizeConnections: true,
    };
    createCluster(options);
    checkNodeRedisOptions(options);
  });

  it('may find its master by a connector of its own', () => {
    class Connector {}
    checkRedisOptions({ Connector } as unknown as RedisOptions);
  });

  it('may have options of sockets that resemble others', () => {
    const socket = { host: 'h', hints: 0, cert: 'c', family: 4, timeout: 1 } as Partial<TcpNetConnectOpts>;
    checkNodeRedisOptions({ socket });
  });
});
