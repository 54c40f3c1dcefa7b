import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import Valkey from 'iovalkey';
import { createClient } from 'redis';
import { ConnectionError } from '../../../lib/backends/redis/links/connection-error.js';
import { errorOf } from '../../support/section.js';
import { until } from '../../support/until.js';
import { failure, RedisWorld } from './redis-world.js';

/** The client libraries whose clients are used directly. From a node-redis client, only the settings are read. */
const LIBRARIES: [string, typeof Redis][] = [
  ['ioredis 6', Redis],
  ['ioredis 5', Redis5 as never],
  ['iovalkey', Valkey as never],
];

describe.each(LIBRARIES)('a client of %s on which the application calls select()', (_, Client) => {
  const world = new RedisWorld();
  let client: Redis;

  beforeEach(() => {
    client = new Client(world.server.url);
  });
  afterEach(async () => {
    client.disconnect();
    await world.redis.flushall();
  });

  it.each([
    ['is connected', () => client.ping()],
    ['is being connected', async () => {}],
  ])('is refused if it is in another database than its options name, when it %s', async (_when, ready) => {
    await ready();
    const selected = client.select(3);
    const refusal = () => world.backend({ connection: client });
    expect(refusal).toThrow(ConnectionError);
    expect(refusal).toThrow(/has selected database 3, but its options name database 0.*db: 3.*client\.duplicate\(\)/);
    await selected;
    await client.select(0);
    expect(await world.backend({ connection: client }).acquire(world.request())).toMatchObject({ acquired: true });
  });

  it('is used when its options name the database', async () => {
    const inThree = new Client(`${world.server.url}/3`);
    await inThree.select(3);
    const lock = world.request();
    await world.backend({ connection: inThree }).acquire(lock);
    expect(await inThree.exists(lock.key)).toBe(1);
    inThree.disconnect();
  });

  it('neither takes nor finds anything in another database', async () => {
    const backend = world.backend({ connection: client });
    const held = world.request();
    const lock = world.request();
    await backend.acquire(held);
    await client.select(3);
    for (const call of [
      backend.acquire(lock),
      backend.acquireAll([lock]),
      backend.renew(held),
      backend.release(held),
      backend.inspect(held.key),
      backend.forceRelease(held.key),
      backend.ping(),
      backend.synchronizers.trySetPermits('permits', 1, { session: 'a:b', sequence: 1 }),
    ]) {
      const error = await failure(call);
      expect(error).toMatchObject({ kind: 'denied', outcome: 'refused' });
      expect(error.message).toMatch(
        /^redis 127\.0\.0\.1:\d+\/0: .*select\(\).*database 3.*database 0.*client\.duplicate\(\)/,
      );
    }
    expect(await client.dbsize()).toBe(0);
    await client.select(0);
    expect(await backend.renew(held)).toBe(true);
    expect(await backend.release(held)).toMatchObject({ released: true });
  });

  it('takes nothing in another database when it selects one while it is not connected', async () => {
    const backend = world.backend({ connection: client });
    const held = world.request();
    await backend.acquire(held);
    client.on('error', () => {});
    await world.redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await until(() => client.status !== 'ready');
    const early = backend.renew(held);
    await new Promise(setImmediate); // it waits in the queue of the client now
    const selected = client.select(3);
    const late = errorOf(backend.acquire(world.request()));
    expect(await early).toBe(true);
    expect((await late).message).toMatch(/database 3/);
    await selected;
    expect(await client.dbsize()).toBe(0);
  });
});

describe('a client of node-redis on which the application calls select()', () => {
  const world = new RedisWorld();

  it.each(['before', 'after'])('has its locks in the database of its options, %s it is lent', async (moment) => {
    const client = createClient({ url: `${world.server.url}/2` });
    await client.connect();
    if (moment === 'before') await client.select(3);
    const backend = world.backend({ connection: client });
    if (moment === 'after') await client.select(3);
    const lock = world.request();
    await backend.acquire(lock);
    expect(await client.exists(lock.key)).toBe(0);
    await client.select(2);
    expect(await client.exists(lock.key)).toBe(1);
    client.destroy();
  });
});
