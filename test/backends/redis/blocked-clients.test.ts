import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { connectionAdvice } from '../../../lib/backends/redis/connection/connection-advice.js';
import { integerOf } from '../../../lib/backends/redis/reply-shape.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { errorOf } from '../../support/section.js';
import { type RedisCluster, startCluster } from '../../support/servers/redis-cluster.js';
import { RedisWorld } from './redis-world.js';

const silent = { warn: () => {}, error: () => {} };

describe.each<[string, typeof Redis]>([
  ['ioredis 6', Redis],
  ['ioredis 5', Redis5 as never],
])('a lent client of %s on which the application', (_, Client) => {
  const world = new RedisWorld();

  const refusalWhile = async (occupy: (client: Redis) => Promise<unknown>): Promise<Error> => {
    const client = new Client(world.server.url);
    const occupied = occupy(client).catch(() => {});
    const locks = createLockService({ connection: client, commandTimeout: 300, logger: silent });
    const error = await errorOf(locks.acquire('order', { waitTime: '5s' }));
    client.disconnect();
    await Promise.all([occupied, locks.close()]);
    return error;
  };

  it.each<[string, (client: Redis) => Promise<unknown>]>([
    ['BLPOP', (client) => client.blpop('jobs', 60)],
    ['XREAD BLOCK', (client) => client.xread('BLOCK', 60_000, 'STREAMS', 'jobs', '$')],
    ['BZPOPMIN', (client) => client.bzpopmin('jobs', 60)],
  ])('waits by %s is named with that command, and with the client that locks need', async (command, occupy) => {
    const { message } = await refusalWhile(async (client) => {
      await client.ping();
      return occupy(client);
    });
    expect(message).toContain(`the application runs ${command} on this ioredis client`);
    expect(message).toContain('client.duplicate()');
    expect(message).not.toContain('socketTimeout');
  });
});

it.each<[string, RegExp, (client: Redis5) => Promise<unknown>]>([
  ['subscribes', /subscribed to channels on this client/, (client) => client.subscribe('news')],
  ['leaves a transaction open', /in a transaction \(MULTI\)/, (client) => client.call('MULTI')],
  [
    'blocks for a short time, again and again',
    /runs BLPOP on this ioredis client/,
    async (client) => {
      const block = (): Promise<unknown> => client.blpop('jobs', 0.2).then(block);
      for (let n = 0; n < 5; n++) block().catch(() => {});
    },
  ],
])('a lent client with which the application later %s is named with what locks need', async (_, state, enter) => {
  const { startRedis } = await import('../../support/servers/redis-server.js');
  const redis = await startRedis();
  const client = new Redis5(redis.url);
  const warnings: string[] = [];
  const logger = { warn: () => {}, error: (line: string) => void warnings.push(line) };
  const locks = createLockService({ connection: client as never, commandTimeout: 300, outageTimeout: '2s', logger });
  await (await locks.acquire('order')).release();
  await enter(client);
  const { message } = await errorOf(locks.acquire('order', { waitTime: '5s' }));
  client.disconnect();
  await locks.close();
  await redis.stop();
  // What a machine says that stood still for 300 ms.
  const texts = [message, ...warnings].filter((text) => !text.includes('reached the server after its deadline'));
  expect(texts).not.toEqual([]);
  for (const text of texts) {
    expect(text).toMatch(state);
    expect(text).toContain('client.duplicate()');
  }
});

// ioredis 5 itself fails with it, so no server is asked.
it('a lent client that monitors the server is named by both kinds of answers', () => {
  const monitors = /runs MONITOR on this client.*client\.duplicate\(\)/;
  expect(connectionAdvice("ERR Replica can't interact with the keyspace")).toMatch(monitors);
  const line = '1795954253.778388 [0 127.0.0.1:42434] "ping"';
  expect(() => integerOf(line, 'redis')).toThrow(monitors);
});

describe('a lent client of a cluster on which the application runs blocking commands', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());

  it('is named with the command of the node that has the lock', async () => {
    const client = cluster.client();
    const names = ['{a}1', '{b}1', '{c}1']; // of three masters
    const locks = createLockService({ connection: client, commandTimeout: 300, logger: silent });
    for (const name of names) await (await locks.acquire(name)).release();
    const blocked = [client.blpop('{a}', 60), client.brpop('{b}', 60), client.bzpopmin('{c}', 60)];
    const messages = await Promise.all(
      names.map(async (name) => (await errorOf(locks.acquire(name, { waitTime: '5s' }))).message),
    );
    client.disconnect();
    await Promise.allSettled([...blocked, locks.close()]);
    expect(messages.map((message) => /application runs (\w+)/.exec(message)?.[1])).toEqual([
      'BLPOP',
      'BRPOP',
      'BZPOPMIN',
    ]);
  });
});
