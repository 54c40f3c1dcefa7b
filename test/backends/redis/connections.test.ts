import { createRequire } from 'node:module';
import { Cluster, Redis } from 'ioredis';
import type { Connection } from '../../../lib/backends/redis/links/connection.js';
import { ConnectionError } from '../../../lib/backends/redis/links/connection-error.js';
import { itOfIoredis } from '../../support/client-under-test.js';
import { RedisWorld } from './redis-world.js';

/** Another copy of ioredis than the one that is imported above. */
function loadAgain(): typeof Redis {
  const require = createRequire(import.meta.url);
  const loaded = Object.entries(require.cache).filter(([path]) => /[\\/]ioredis[\\/]/.test(path));
  for (const [path] of loaded) delete require.cache[path];
  try {
    return require('ioredis').Redis;
  } finally {
    Object.assign(require.cache, Object.fromEntries(loaded));
  }
}

describe('the connection of a Redis backend', () => {
  const world = new RedisWorld();

  async function works(connection: Connection): Promise<string> {
    const backend = world.backend({ connection });
    const lock = world.request();
    expect(await backend.acquire(lock)).toMatchObject({ acquired: true });
    expect(await backend.release(lock)).toMatchObject({ released: true });
    await backend.close();
    return backend.description;
  }

  it.each([
    ['a URL', (port: number) => `redis://:@127.0.0.1:${port}/3`, '/3'],
    ['options', (port: number) => ({ host: '127.0.0.1', port, db: 2 }), '/2'],
    ['lazy options', (port: number) => ({ host: '127.0.0.1', port, lazyConnect: true }), '/0'],
    ['options with auto-pipelining', (port: number) => ({ port, host: '127.0.0.1', enableAutoPipelining: true }), '/0'],
    ['numbers as strings', (port: number) => ({ port, host: '127.0.0.1', stringNumbers: true }), '/0'],
    ['the old protocol', (port: number) => ({ port, host: '127.0.0.1', protocol: 2 as const }), '/0'],
  ])('can be %s', async (_what, connection, database) => {
    expect(await works(connection(world.server.port))).toBe(`redis 127.0.0.1:${world.server.port}${database}`);
  });

  it('keeps locks in the database that it names', async () => {
    const backend = world.backend({ connection: `${world.server.url}/5` });
    const lock = world.request();
    await backend.acquire(lock);
    const inFive = world.server.client({ db: 5 });
    expect([await inFive.exists(lock.key), await world.redis.exists(lock.key)]).toEqual([1, 0]);
  });

  it('is described without its credentials', async () => {
    await world.redis.acl('SETUSER', 'clerk', 'on', '>secret-word', 'allkeys', 'allchannels', '+@all');
    const description = await works(world.server.url.replace('//', '//clerk:secret-word@'));
    expect(description).toBe(`redis 127.0.0.1:${world.server.port}/0`);
  });

  it('is left open and unchanged when it is borrowed', async () => {
    const client = world.server.client({ commandTimeout: 4_000 });
    await client.ping();
    const events = () => client.eventNames().map((name) => [name, client.listenerCount(name)]);
    const before = [events(), { ...client.options }];
    const backend = world.backend({ connection: client });
    const lock = world.request();
    await backend.subscribe(lock.key, 'reentrant', 'c', () => {}).ready;
    await backend.acquire(lock);
    expect([events(), { ...client.options }]).toEqual(before);
    await backend.close();
    expect(client.status).toBe('ready');
    expect(await client.ping()).toBe('PONG');
    expect(await world.connections('pubsub')).toEqual([]);
  });

  it('is borrowed when a function returned it', async () => {
    const client = world.server.client();
    await works(() => client);
    expect(await client.ping()).toBe('PONG');
  });

  it('can be a client of another copy of ioredis', async () => {
    const Another = loadAgain();
    expect(Another).not.toBe(Redis);
    const client = new Another({ host: '127.0.0.1', port: world.server.port });
    await works(client);
    client.disconnect();
  });

  it('is closed when it is ours', async () => {
    const backend = world.backend();
    await backend.subscribe('lock:x', 'reentrant', 'c', () => {}).ready;
    await backend.acquire(world.request());
    const before = (await world.connections('normal')).length;
    await backend.close();
    expect(await world.connections('normal')).toHaveLength(before - 1);
    expect(await world.connections('pubsub')).toEqual([]);
  });

  itOfIoredis.each<[string, unknown, RegExp]>([
    ['a mistyped URL', 'rediss:/user:secret-word@host', /not a Redis URL: write 'redis:\/\/host/],
    ['an empty URL', '', /not a Redis URL/],
    ['a number', 6379, /is number, which is not an ioredis client\. Give a URL/],
    ['nothing', null, /is null/],
    ['a client of another library', new (class RedisClient {})(), /an object of RedisClient/],
    ['a function that returns none', () => undefined, /function returned undefined, which is not an ioredis client/],
    ['a cluster without nodes', { nodes: [] }, /no cluster nodes/],
    [
      'options with a keyPrefix',
      { host: 'h', keyPrefix: 'app:', lazyConnect: true },
      /has a keyPrefix.*RedisLockModule/,
    ],
  ])('is refused when it is %s', (_what, connection, message) => {
    const refusal = () => world.backend({ connection: connection as Connection });
    expect(refusal).toThrow(ConnectionError);
    expect(refusal).toThrow(message);
    expect(refusal).not.toThrow(/secret-word/);
  });

  it('is refused when its client has a keyPrefix', () => {
    const cluster = new Cluster(['redis://127.0.0.1:1'], { keyPrefix: 'app:', lazyConnect: true });
    for (const client of [world.server.client({ keyPrefix: 'app:' }), cluster]) {
      expect(() => world.backend({ connection: client })).toThrow(/has a keyPrefix/);
    }
  });

  it('is refused when its client is in subscriber or monitor mode', async () => {
    const subscriber = world.server.client({ protocol: 2 });
    await subscriber.subscribe('news');
    const monitor = await world.server.client().monitor();
    expect(() => world.backend({ connection: subscriber })).toThrow(/in subscriber mode.*client\.duplicate\(\)/);
    expect(() => world.backend({ connection: monitor })).toThrow(/in monitor mode/);
    monitor.disconnect();
  });
});
