import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import type { Connection } from '../../../lib/service/redis-lock-options.js';
import { leftBehind } from '../../support/left-behind.js';
import { ms, openWorld } from '../../support/lock-world.js';
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js';
import { errorOf } from '../../support/section.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';

const COMMAND_TIMEOUT = 1_000;
/** Well below a lease, which lasts ten times as long as a command. */
const GONE_WITHIN = COMMAND_TIMEOUT + 5_000;

interface Asked {
  readonly what: string;
  /** Makes it wait: another process takes what it wants. */
  prepare?(others: LockService): Promise<unknown>;
  /** Resolves to a function that releases it; rejects if nothing was acquired. */
  ask(locks: LockService, waitTime: number): Promise<() => Promise<void>>;
}

const lock = (name: string, options: LockOptions = {}, names: string | string[] = name): Asked => ({
  what: name,
  ask: async (locks, waitTime) => {
    const lease = await locks.acquire(names, { ...options, waitTime });
    return () => lease.release();
  },
});

const FREE: readonly Asked[] = [
  lock('reentrant'),
  lock('fenced', { type: 'fenced' }),
  lock('fair', { type: 'fair' }),
  lock('read', { type: 'read' }),
  lock('write', { type: 'write' }),
  lock('several', {}, ['several:1', 'several:2']),
  {
    what: 'permit',
    ask: async (locks, waitTime) => {
      const semaphore = locks.getSemaphore('mail');
      if (!(await semaphore.tryAcquire(1, waitTime))) throw new Error('busy');
      return () => semaphore.release();
    },
  },
  {
    what: 'permit with an id',
    ask: async (locks, waitTime) => {
      const semaphore = locks.getPermitExpirableSemaphore('licences');
      const id = await semaphore.tryAcquire(waitTime);
      if (id === null) throw new Error('busy');
      return () => semaphore.release(id);
    },
  },
];

const BUSY: readonly Asked[] = [
  {
    ...lock('place in a fair queue', { type: 'fair' }),
    prepare: (others) => others.acquire('place in a fair queue', { type: 'fair' }),
  },
  {
    ...lock('announcement of a writer', { type: 'write' }),
    prepare: (others) => others.acquire('announcement of a writer', { type: 'read' }),
  },
];

describe('requests that arrive after their caller has left take nothing for long', () => {
  const world = openWorld('Redis');
  let proxy: TcpProxy;
  let redis: Redis;
  let before: readonly string[];

  beforeAll(() => {
    redis = world.redis.client();
  });
  beforeEach(async () => {
    await redis.flushall();
    proxy = await startTcpProxy(world.redis.port);
  });
  afterEach(() => proxy.stop());

  /** Two processes, one of which is connected through the proxy. Everything that they will use was used once before. */
  const open = async (connection: Connection = proxy.url) => {
    const others = await world.service();
    const timeouts = { commandTimeout: COMMAND_TIMEOUT, waiterTimeout: ms(60_000) };
    const locks = await world.service({ connection, ...timeouts });
    await others.getSemaphore('mail').trySetPermits(2);
    await others.getPermitExpirableSemaphore('licences').trySetPermits(2);
    for (const { ask } of FREE) await (await ask(locks, 0))();
    for (const { prepare } of BUSY) await prepare?.(others);
    before = await left();
    return { locks, others };
  };

  const left = (): Promise<string[]> =>
    leftBehind(redis, { [`${world.keyPrefix}mail`]: 2, [`${world.keyPrefix}licences`]: 2 });
  const more = async () => (await left()).filter((key) => !before.includes(key));

  const nothingIsLeftSoon = async () => {
    await sleep(100); // so that the server has executed what it has received
    await until(async () => (await more()).length === 0, GONE_WITHIN).catch(() => {});
    expect(await more()).toEqual([]);
  };

  /** Delays the request and everything behind it. Other connections are not delayed. */
  const heldUp = async <T>(asked: Promise<T>): Promise<T> => {
    await until(() => proxy.holding > 0);
    await sleep(100); // everything was sent
    proxy.holdUp();
    return asked;
  };

  it.each([
    ['when their caller has just left', 0],
    ['three seconds after they were sent', 3_000],
  ])('held up, and let through %s', async (_, after) => {
    const { locks } = await open();
    const sent = performance.now();
    proxy.holdUp({ requests: () => 60_000 });
    // Also on new connections, so that a second try is held up as well.
    await Promise.all([
      ...FREE.map(({ ask }) => errorOf(ask(locks, 0))),
      ...BUSY.map(({ ask }) => errorOf(ask(locks, 500))),
    ]);
    await sleep(Math.max(0, sent + after - performance.now()));
    proxy.letThrough();
    await nothingIsLeftSoon();
  });

  it.each([
    ['waits', 20_000],
    ['tries once', 0],
  ])('held up, and let through after a second attempt of a caller that %s was served and released', async (_, wait) => {
    const { locks } = await open();
    proxy.holdUp({ requests: () => 60_000 });
    const served = await heldUp(Promise.all(FREE.map(({ ask }) => ask(locks, wait))));
    await Promise.all(served.map((giveBack) => giveBack()));
    await sleep(COMMAND_TIMEOUT);
    proxy.letThrough();
    await nothingIsLeftSoon();
  });

  it('held up on the way to the next waiter of their process', async () => {
    const { locks } = await open();
    const first = await locks.acquire('order', { leaseTime: '30s' });
    const abort = new AbortController();
    const second = errorOf(locks.acquire('order', { leaseTime: '30s', signal: abort.signal }));
    proxy.holdUp({ requests: () => 60_000 });
    const released = heldUp(first.release());
    await until(() => proxy.holding > 0);
    abort.abort();
    await Promise.all([released, second]);
    await sleep(2 * COMMAND_TIMEOUT);
    proxy.letThrough();
    await nothingIsLeftSoon();
  });

  it.each<[string, (proxy: TcpProxy) => Redis | { port: number; socketTimeout: number }]>([
    ['a borrowed client', ({ url }) => new Redis(url)],
    ['a client that has a socketTimeout of its own', ({ port }) => ({ port, socketTimeout: 60_000 })],
  ])('sent again by %s, which learns late that the server does not know their script', async (_, connect) => {
    const connection = connect(proxy);
    const { locks, others } = await open(connection);
    const released = await others.acquire('released');
    await redis.script('FLUSH');
    await released.release(); // the scripts that release are known again, those that acquire are not
    proxy.holdUp({ replies: () => 60_000 });
    await Promise.all(Array.from({ length: 5 }, (_, n) => errorOf(locks.acquire(`order:${n}`, { waitTime: 0 }))));
    await sleep(COMMAND_TIMEOUT / 2); // meanwhile they are released
    proxy.letThrough();
    await nothingIsLeftSoon();
    await locks.close();
    if (connection instanceof Redis) connection.disconnect();
  });
});

describe('a request behind another one that waits for replicas takes nothing for long', () => {
  const world = openWorld('Redis');
  let replica: RedisServer;
  let redis: Redis;

  beforeAll(async () => {
    redis = world.redis.client();
    await redis.config('SET', 'repl-diskless-sync-delay', '0');
    replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(world.redis.port)] });
    await until(async () => /state=online/.test(await redis.info('replication')));
  });
  afterAll(() => replica?.stop());

  it('when its caller has left meanwhile', async () => {
    const settings = { minReplicas: 1, commandTimeout: COMMAND_TIMEOUT } as const;
    const locks = createLockService({ connection: world.redis.url, ...settings });
    await (await locks.acquire('order')).release();
    replica.pause();
    try {
      const waits = async () => !/blocked_clients:0/.test(await redis.info('clients'));
      const first = errorOf(locks.acquire('order', { waitTime: 0 }));
      await until(waits);
      const names = Array.from({ length: 15 }, (_, n) => `order:${n}`);
      await Promise.all(names.map((name) => errorOf(locks.acquire(name, { waitTime: 0 }))));
      await first;
      await until(async () => !(await waits()));
      await sleep(100);
      await until(async () => (await leftBehind(redis)).length === 0, GONE_WITHIN).catch(() => {});
      expect(await leftBehind(redis)).toEqual([]);
    } finally {
      replica.resume();
      await locks.close();
    }
  });
});
