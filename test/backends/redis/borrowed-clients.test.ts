import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import Valkey from 'iovalkey';
import { createClient } from 'redis';
import { ConnectionError } from '../../../lib/backends/redis/links/connection-error.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js';
import { errorOf } from '../../support/section.js';
import { type RedisCluster, startCluster } from '../../support/servers/redis-cluster.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { failure, RedisWorld, succeeds } from './redis-world.js';

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
    await backend.renew(held); // Redis has the script of `early`, which would be refused when it was sent again
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
    // ioredis itself goes back to database 0 if select() was called while it was already connecting again.
    await client.ping();
    expect(await world.redis.info('keyspace')).not.toMatch(/^db3:/m);
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

/** Lines of a log in which a caller that waits through an outage is reported. */
class OutageLog {
  readonly lines: string[] = [];
  readonly logger = {
    warn: (line: string) => void this.lines.push(line),
    error: (line: string) => void this.lines.push(line),
  };

  get outages(): string[] {
    return this.lines.filter((line) => /does not answer|refuses to take locks/.test(line));
  }
}

describe.each(LIBRARIES)('a client of %s whose connection is dead', (_, Client) => {
  const world = new RedisWorld();
  const ADVICE =
    /nothing arrives on the connection of your ioredis client.*only the client can replace it: set socketTimeout in its options.*the options instead of the client/;
  let proxy: TcpProxy;
  let client: Redis;
  let locks: LockService;
  let log: OutageLog;

  beforeEach(async () => {
    proxy = await startTcpProxy(world.server.port);
    log = new OutageLog();
  });
  afterEach(async () => {
    await locks.close();
    client.disconnect();
    await proxy.stop();
    await world.redis.flushall();
  });

  /** A service whose connections worked, and which a firewall has then forgotten. */
  const dead = async (options: RedisOptions, commandTimeout = 500) => {
    client = new Client({ host: '127.0.0.1', port: proxy.port, ...options });
    client.on('error', () => {});
    const { logger } = log;
    locks = createLockService({
      connection: client,
      commandTimeout,
      outageTimeout: 4_000,
      shutdownTimeout: 50,
      logger,
    });
    await until(() => succeeds(locks.withLock('first', () => {})));
    log.lines.length = 0; // on a busy machine, the client had to connect again and again
    proxy.cutHalfOpen();
    await proxy.heal();
  };

  it('is named by the error of every call, and once by the log, with what its owner can set', async () => {
    await dead({});
    const errors = await Promise.all(
      [
        locks.acquire('a', { waitTime: 0 }),
        locks.acquire('b', { waitTime: 2_500 }),
        locks.acquire('c'),
        locks.acquire('d'),
        locks.getSemaphore('permits', { permits: 1 }).acquire(),
        locks.isLocked('a'),
        locks.list(),
      ].map(errorOf),
    );
    for (const { message } of errors) expect(message).toMatch(ADVICE);
    expect(log.outages).toEqual([expect.stringMatching(ADVICE)]);
    expect(await world.redis.keys('lock:*')).toEqual([]);
  });

  it('is replaced by the client when its owner has set that, and even a call that tries once succeeds', async () => {
    await dead({ socketTimeout: 200 }, 10_000);
    expect(await locks.tryAcquire('a')).not.toBeNull();
  });

  it('is named as well when the commandTimeout of ioredis ends the commands', async () => {
    await dead({ commandTimeout: 300 });
    const errors = await Promise.all([locks.acquire('a', { waitTime: 0 }), locks.acquire('b')].map(errorOf));
    for (const { message } of errors) expect(message).toMatch(ADVICE);
    expect(log.outages).toEqual([expect.stringMatching(ADVICE)]);
  });
});

describe.each(LIBRARIES)('a client of %s whose server has become a replica', (_, Client) => {
  const world = new RedisWorld();
  const ADVICE =
    /READONLY.*the server is a replica.*only its owner may reconnect.*reconnectOnError: \(error\) => \(error\.message\.includes\('READONLY'\) \? 2 : false\).*the options instead of the client/;
  let master: RedisServer;
  let proxy: TcpProxy;
  let client: Redis;
  let locks: LockService;
  let log: OutageLog;

  beforeAll(async () => {
    master = await startRedis();
  });
  beforeEach(async () => {
    proxy = await startTcpProxy(world.server.port);
    log = new OutageLog();
  });
  afterEach(async () => {
    await locks.close();
    client.disconnect();
    await proxy.stop();
    await world.redis.replicaof('NO', 'ONE');
  });
  afterAll(() => master.stop());

  /** A service behind a proxy that leads to the next master for new connections only. */
  const failedOver = async (options: RedisOptions) => {
    client = new Client({ host: '127.0.0.1', port: proxy.port, ...options });
    const { logger } = log;
    const limits = { commandTimeout: 10_000, outageTimeout: 4_000, shutdownTimeout: 50 };
    locks = createLockService({ connection: client, ...limits, logger });
    await until(() => succeeds(locks.withLock('first', () => {})));
    await world.redis.replicaof('127.0.0.1', String(master.port));
    proxy.leadTo(master.port);
  };

  it('is named by errors and once by the log, with the remedy, and is not disturbed', async () => {
    await failedOver({});
    const id = await client.client('ID');
    const errors = await Promise.all(
      [
        locks.acquire('a', { waitTime: 0 }),
        locks.acquire('b', { waitTime: 2_500 }),
        locks.acquire('c'),
        locks.getSemaphore('permits', { permits: 1 }).tryAcquire(),
      ].map(errorOf),
    );
    for (const { message } of errors) expect(message).toMatch(ADVICE);
    expect(log.outages).toEqual([expect.stringMatching(ADVICE)]);
    expect(await client.client('ID')).toBe(id);
  });

  it('reaches the next master with that remedy, even in a call that tries once', async () => {
    await failedOver({ reconnectOnError: (error) => (error.message.includes('READONLY') ? 2 : false) });
    expect(await locks.tryAcquire('a')).not.toBeNull();
    expect(await master.client().exists('lock:a')).toBe(1);
  });
});

describe('a client of a cluster of which one connection is dead', () => {
  let cluster: RedisCluster;
  let proxy: TcpProxy;
  let client: Cluster;
  let locks: LockService;

  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterEach(async () => {
    await locks.close();
    client.disconnect();
    await proxy.stop();
  });
  afterAll(() => cluster?.stop());

  const dead = async (redisOptions: RedisOptions, commandTimeout = 1_000) => {
    const { port } = await cluster.masterOf(await cluster.slotOf('lock:{a}'));
    proxy = await startTcpProxy(port);
    const natMap = { [`127.0.0.1:${port}`]: { host: '127.0.0.1', port: proxy.port } };
    client = new Cluster(cluster.nodes, { natMap, redisOptions });
    client.on('error', () => {});
    const logger = { warn: () => {}, error: () => {} };
    locks = createLockService({ connection: client, commandTimeout, shutdownTimeout: 50, logger });
    await until(() => succeeds(locks.withLock('{a}', () => {})));
    await until(() => succeeds(locks.withLock('{b}', () => {})));
    proxy.cutHalfOpen();
    await proxy.heal();
  };

  it('fails calls to that node alone, with what its owner can set', async () => {
    await dead({});
    const [error, lease] = await Promise.all([errorOf(locks.acquire('{a}', { waitTime: 0 })), locks.acquire('{b}')]);
    expect(error.message).toMatch(
      /nothing arrives on the connection of your ioredis client.*of a cluster: in redisOptions/,
    );
    expect(lease.held).toBe(true);
    await lease.release();
  });

  it('works as before once its owner has set that', async () => {
    await dead({ socketTimeout: 300 }, 10_000);
    expect(await locks.tryAcquire('{a}')).not.toBeNull();
  });
});
