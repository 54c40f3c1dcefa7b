import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
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

it('a lent client that the application subscribes with later is named with what locks need', async () => {
  const { startRedis } = await import('../../support/servers/redis-server.js');
  const redis = await startRedis();
  const client = new Redis5(redis.url);
  const locks = createLockService({ connection: client as never, commandTimeout: 300, logger: silent });
  await (await locks.acquire('order')).release();
  await client.subscribe('news');
  const { message } = await errorOf(locks.acquire('order', { waitTime: '5s' }));
  expect(message).toMatch(/subscribed to channels on this client.*client\.duplicate\(\)/);
  client.disconnect();
  await locks.close();
  await redis.stop();
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
