import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { Connection } from '../../../lib/backends/redis/links/connection.js';
import { ConnectionError } from '../../../lib/backends/redis/links/connection-error.js';
import { LockConfigurationError, LockUnavailableError } from '../../../lib/engine/errors.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { itOfIoredis } from '../../support/client-under-test.js';
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js';
import { errorOf } from '../../support/section.js';
import { startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { RedisWorld, succeeds } from './redis-world.js';

const silent = { warn: () => {}, error: () => {} };
const sentinels = [{ host: '127.0.0.1', port: 26_379 }];
const nodes = [{ host: '127.0.0.1', port: 7_000 }];

/** Makes every kind of call whose reply a service reads. */
async function useAll(locks: LockService): Promise<void> {
  const first = await locks.acquire('order');
  expect(first.fencingToken).toBeGreaterThan(1e15);
  expect(await locks.tryAcquire('order')).toBeNull();
  expect((await locks.inspect('order')).owners).toEqual([
    { owner: first.owner, mine: true, remainingTime: expect.any(Number), client: expect.any(Object) },
  ]);
  const waiting = ['a', 'b', 'c'].map(() => locks.withLock('order', async ({ fencingToken }) => fencingToken));
  await first.extend('40s');
  await first.release();
  const tokens = [first.fencingToken, ...(await Promise.all(waiting))];
  expect([...tokens].sort((one, other) => one - other)).toEqual(tokens);
  expect(new Set(tokens).size).toBe(4);
  for (const type of ['fair', 'read', 'write', 'fenced'] as const)
    await locks.withLock(`${type} lock`, { type }, () => {});
  await locks.withLock(['one', 'two'], ({ tokens: { size } }) => expect(size).toBe(2));
  expect(await locks.getFencedLock('fenced lock').getToken()).toEqual(expect.any(Number));
  const permits = locks.getPermitExpirableSemaphore('permits');
  expect(await permits.trySetPermits(2)).toBe(true);
  const id = await permits.acquire();
  expect([await permits.availablePermits(), await permits.getPermits()]).toEqual([1, 2]);
  await permits.release(id);
  const latch = locks.getCountDownLatch('latch');
  expect([await latch.trySetCount(1), await latch.getCount(), await latch.await(0)]).toEqual([true, 1, false]);
  await latch.countDown();
  expect(await latch.await(0)).toBe(true);
  expect(await locks.forceRelease('order')).toBe(false);
}

describe('a setting that ioredis would ignore, or that makes locks unsafe, is refused by name', () => {
  const world = new RedisWorld();
  const url = (rest: string, user = '') => `redis://${user}127.0.0.1:6379${rest}`;

  itOfIoredis.each<[string, unknown, RegExp]>([
    ['a database that is not a number', url('/orders'), /path in the URL of the connection must be a database number/],
    ['a database that begins with a number', url('/3x'), /path in the URL/],
    ['a negative database', url('/-1'), /path in the URL/],
    ['half a database', url('/1.5'), /path in the URL/],
    ['a path behind the database', url('/2/orders'), /path in the URL/],
    ['a parameter db that is not a number', url('?db=orders'), /parameter db in the URL/],
    ['two databases', url('/1?db=2'), /names two databases/],
    ['a parameter that ioredis does not know', url('?ssl=true'), /the parameter 'ssl'.*ioredis options instead/],
    ['one that would be a string', url('?lazyConnect=false'), /the parameter 'lazyConnect'/],
    ['TLS as a parameter', url('?tls=false'), /the parameter 'tls'.*for TLS write rediss:\/\//],
    ['a family that is none', url('?family=ipv6'), /family.*must be 4 or 6/],
    ['a # in the password', 'redis://clerk:12#secret-word@127.0.0.1/0', /write # as %23/],
    ['a / in the password', 'redis://clerk:12/secret-word@127.0.0.1/0', /write # as %23, \/ as %2F/],
    ['a ? in the password', 'redis://clerk:12?secret-word@127.0.0.1/0', /\? as %3F/],
    ['a % in the password', url('', 'clerk:50%secret-word@'), /% as %25/],
    ['a parameter in the path of a socket', '/tmp/redis.sock?database=2', /the parameter 'database'/],
    ['a URL without its protocol', '//127.0.0.1:6379', /not a Redis URL/],
    ['db: text', { host: 'h', db: '3x' }, /^db of the connection must be a database number/],
    ['db: empty text', { host: 'h', db: '' }, /^db of/],
    ['db: NaN', { host: 'h', db: Number.NaN }, /^db of/],
    ['db: -1', { host: 'h', db: -1 }, /^db of/],
    ['db: 1.5', { host: 'h', db: 1.5 }, /^db of/],
    ['db: true', { host: 'h', db: true }, /^db of/],
    ['url among the options', { url: 'redis://:secret-word@h' }, /has 'url', which.*give the URL itself/],
    ['database among the options', { host: 'h', database: 3 }, /has 'database'.*calls it db/],
    ['node-redis’s socket', { socket: { host: 'h', tls: true } }, /has 'socket'/],
    ['hostname', { hostname: 'h' }, /calls it host/],
    ['ssl', { host: 'h', ssl: true }, /calls it tls/],
    ['sentinels without a name', { sentinels }, /sentinels but no name/],
    ['no sentinels', { sentinels: [], name: 'mymaster' }, /sentinels of the connection must be a list/],
    ['sentinels as text', { sentinels: 'a:26379', name: 'mymaster' }, /sentinels of the connection must be a list/],
    ['a sentinel as text', { sentinels: ['a:26379'], name: 'mymaster' }, /sentinels of the connection must be a list/],
    ['the replicas of sentinels', { sentinels, name: 'm', role: 'slave' }, /role: 'slave': a writable replica/],
    ['tls without its switch', { sentinels, name: 'm', tls: {} }, /uses TLS.*only when.*enableTLSForSentinelMode/],
    ['the switch without tls', { sentinels, name: 'm', enableTLSForSentinelMode: true }, /uses TLS.*only when/],
    [
      'no database of a cluster',
      { nodes, options: { redisOptions: { db: -1 } } },
      /db in the redisOptions.* must be a database number/,
    ],
    ['a database of a cluster node', { nodes: [{ ...nodes[0], db: 2 }] }, /db of a cluster node would be ignored/],
    ['a database in a cluster’s URL', { nodes: [url('/2')] }, /db of a cluster node would be ignored/],
    ['TLS in a cluster’s URL', { nodes: ['rediss://h:7000'] }, /rediss:\/\/ of a cluster node.*redisOptions.*tls: {}/],
    ['TLS of a cluster node', { nodes: [{ ...nodes[0], tls: {} }] }, /tls of a cluster node/],
    ['the password in a cluster’s URL', { nodes: [url('', ':secret-word@')] }, /password of a cluster node/],
    ['the password of a node', { nodes: [{ ...nodes[0], password: 'secret-word' }] }, /password of a cluster node/],
    ['a parameter of a cluster’s URL', { nodes: [url('?ssl=true')] }, /the parameter 'ssl'/],
    ['tls of a cluster as such', { nodes, options: { tls: {} } }, /tls in the options of a cluster.*redisOptions/],
    ['a password of a cluster as such', { nodes, options: { password: 'secret-word' } }, /password in the options/],
    ['options beside the nodes', { nodes, password: 'secret-word' }, /'password' beside them would be ignored/],
  ])('%s', (_, connection, message) => {
    const refusal = () => world.backend({ connection: connection as Connection });
    expect(refusal).toThrow(ConnectionError);
    expect(refusal).toThrow(message);
    expect(refusal).not.toThrow(/secret-word/);
    const service = () => createLockService({ connection: connection as Connection, logger: silent });
    expect(service).toThrow(LockConfigurationError);
    expect(service).toThrow(/RedisLockModule: connection: /);
  });

  itOfIoredis.each<[string, () => Redis | Cluster, RegExp]>([
    ['a database that is not a number', () => new Redis('redis://h/orders', { lazyConnect: true }), /database number/],
    ['a negative database', () => new Redis({ db: -1, lazyConnect: true }), /database number/],
    ['replicas', () => new Redis({ sentinels, name: 'm', role: 'slave', lazyConnect: true }), /role: 'slave'/],
    [
      'a negative database of a cluster',
      () => new Cluster(nodes, { redisOptions: { db: -1 } as never, lazyConnect: true }),
      /database number/,
    ],
  ])('in a borrowed client: %s', (_, connect, message) => {
    const client = connect();
    expect(() => world.backend({ connection: client })).toThrow(message);
    client.disconnect();
  });

  itOfIoredis('a writable replica would grant a lock beside its master (which is why it is refused)', async () => {
    const replica = await startRedis({
      args: ['--replicaof', '127.0.0.1', String(world.server.port), '--replica-read-only', 'no'],
    });
    const lock = world.request();
    const backends = [world.backend({ connection: replica.url }), world.backend()];
    for (const backend of backends) {
      const owner = world.owner();
      expect(await backend.acquire({ ...lock, owner })).toMatchObject({ acquired: true });
    }
    await Promise.all(backends.map((backend) => backend.close()));
    await replica.stop();
  });
});

describe('a harmless setting', () => {
  const world = new RedisWorld();
  let locks: LockService;

  beforeEach(() => world.redis.flushall());
  afterEach(() => locks.close());

  it.each<[string, RedisOptions & { replyMapping?: string }]>([
    ['stringNumbers', { stringNumbers: true }],
    ['enableAutoPipelining', { enableAutoPipelining: true }],
    ['readOnly', { readOnly: true }],
    ['enableReadyCheck: false', { enableReadyCheck: false }],
    ['enableOfflineQueue: false', { enableOfflineQueue: false }],
    ['maxRetriesPerRequest: 0', { maxRetriesPerRequest: 0 }],
    ['maxRetriesPerRequest: null', { maxRetriesPerRequest: null }],
    ['autoResendUnfulfilledCommands: false', { autoResendUnfulfilledCommands: false }],
    ['commandTimeout', { commandTimeout: 4_000 }],
    ['natMap', { natMap: { '10.0.0.1:6379': { host: '127.0.0.1', port: 1 } } }],
    ['showFriendlyErrorStack', { showFriendlyErrorStack: true }],
    ['the old protocol', { protocol: 2 }],
    ['replyMapping', { protocol: 3, replyMapping: 'resp3' }],
    ['db as text', { db: '4' as never }],
    ['a user name with its password', { username: 'default', password: 'any' }],
  ])('%s: everything works as without it, on a client of ours and on a borrowed one', async (_, options) => {
    const { port } = world.server;
    locks = createLockService({ connection: { host: '127.0.0.1', port, ...options }, logger: silent });
    await useAll(locks);
    await world.redis.flushall();
    await locks.close();
    const client = world.server.client(options);
    locks = createLockService({ connection: client, logger: silent });
    await useAll(locks);
  });

  it.each([
    ['?db=4', 'db=4'],
    ['?family=4&connectionName=locks', 'name=locks'],
    ['/0004?db=4', 'db=4'],
  ])('%s in a URL is used', async (rest, trace) => {
    locks = createLockService({ connection: world.server.url + rest, logger: silent });
    await useAll(locks);
    expect(await world.redis.client('LIST')).toContain(trace);
  });

  it('a user name without a password is accepted where none is needed, and refused by Redis elsewhere', async () => {
    const { url } = world.server;
    await world.redis.acl('SETUSER', 'guest', 'on', 'nopass', 'allkeys', 'allchannels', '+@all');
    locks = createLockService({ connection: url.replace('//', '//guest@'), logger: silent });
    await useAll(locks);
    expect(await world.redis.client('LIST')).toContain('user=guest');
    const wrong = createLockService({ connection: url.replace('//', '//nobody@'), logger: silent });
    const error = await errorOf(wrong.tryAcquire('order'));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toContain('WRONGPASS');
    await wrong.close();
  });
});

describe('commandTimeout of ioredis', () => {
  const world = new RedisWorld();
  let proxy: TcpProxy;
  let client: Redis;
  let locks: LockService;

  afterEach(async () => {
    await proxy.heal();
    await locks.close();
    client.disconnect();
    await proxy.stop();
  });

  it.each(['own', 'borrowed'])(
    'leaves no lock to nobody when it ends an acquisition that was not sent (%s client)',
    async (whose) => {
      proxy = await startTcpProxy(world.server.port);
      const options = { ...address(proxy.url), commandTimeout: 100 };
      client = new Redis(options).on('error', () => {});
      locks = createLockService({ connection: whose === 'own' ? options : client, logger: silent });
      await until(() => succeeds(locks.withLock('one', () => {}))); // the server knows the scripts from now on
      await proxy.refuse();
      await errorOf(locks.isLocked('three')); // ioredis knows that it is not connected
      const refused = Promise.all(['one', 'two'].map((name) => errorOf(locks.tryAcquire(name))));
      for (const error of await refused) expect(error).toBeInstanceOf(LockUnavailableError);
      await proxy.heal();
      const answers = () =>
        locks.isLocked('three').then(
          () => true,
          () => false,
        );
      await until(answers);
      expect(await world.redis.keys('lock:*')).toEqual([]);
    },
  );
});

function address(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}
