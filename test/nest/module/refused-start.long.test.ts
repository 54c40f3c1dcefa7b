import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisLockOptions } from '../../../lib/service/redis-lock-options.js';
import { startProcess } from '../../support/processes/start-process.js';
import { type RedisCluster, startCluster } from '../../support/servers/redis-cluster.js';
import { type RedisSentinel, startSentinel } from '../../support/servers/redis-sentinel.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';

type Connection = RedisLockOptions['connection'];

/** Tests that a process ends after NestJS has refused to start its application. */
function refusedStart(connection: () => Connection) {
  return async (reason: string, says: RegExp): Promise<void> => {
    const { child, line } = await startProcess('refused-start.ts', JSON.stringify(connection()), reason);
    try {
      expect(line).toMatch(says);
      if (child.exitCode === null) await once(child, 'exit', { signal: AbortSignal.timeout(10_000) });
      expect(child.exitCode).toBe(0);
    } finally {
      child.kill('SIGKILL');
    }
  };
}

describe('the process of an application that does not start', () => {
  let redis: RedisServer;
  let cluster: RedisCluster;
  let sentinel: RedisSentinel;
  const rootNodes = () => cluster.nodes.map((socket) => ({ socket }));
  const toNodeRedis = ({ name, sentinels }: RedisSentinel['options']) => ({
    client: 'node-redis' as const,
    name,
    sentinelRootNodes: sentinels as { host: string; port: number }[],
  });
  beforeAll(async () => {
    [redis, cluster, sentinel] = await Promise.all([startRedis(), startCluster(), startSentinel()]);
  });
  afterAll(() => Promise.all([redis?.stop(), cluster?.stop(), sentinel?.stop()]));

  it.each([
    ['duplicate names', /RedisLockModule is imported 2 times/],
    ['options of another module', /waitTime/],
    ['a request-scoped option', /the options depend on Tenant/],
    ['a leader for each request', /@Leader needs a provider that exists once/],
  ])(
    'ends, because RedisLockModule, which refused the start, closes its connections: %s',
    refusedStart(() => redis.url),
  );

  describe.each([
    ['ioredis', (port: number) => ({ port })],
    ['node-redis', (port: number) => ({ client: 'node-redis' as const, socket: { port } })],
  ])('with %s', (_, connectionTo) => {
    it.each([
      ['a provider that cannot be created', /no mail server/],
      ['onModuleInit of a provider', /no mail server/],
      ['onModuleInit, after locks were used', /no mail server/],
    ])(
      'ends, because our connections do not keep it alive: %s',
      refusedStart(() => connectionTo(redis.port)),
    );

    it('ends while Redis is down', () =>
      refusedStart(() => connectionTo(1))('onModuleInit, without a Redis', /no mail server/));

    it('stays alive if the application starts, although it has nothing to do', async () => {
      const connection = JSON.stringify(connectionTo(redis.port));
      const { child, line } = await startProcess('refused-start.ts', connection, 'nothing');
      try {
        expect(line).toBe('started');
        await sleep(1_000);
        expect(child.exitCode).toBeNull();
      } finally {
        child.kill('SIGKILL');
      }
    });
  });

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
