import type { Redis } from 'ioredis';
import { slotOf } from '../../../lib/backends/redis/hash-slot.js';
import { LockBusyError, LockUnavailableError } from '../../../lib/engine/errors.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import type { RedisLockOptions } from '../../../lib/service/redis-lock-options.js';
import { startNodes } from '../../backends/quorum/redis-nodes.js';
import { startTcpProxy } from '../../support/network/tcp-proxy.js';
import { errorOf } from '../../support/section.js';
import { startCluster } from '../../support/servers/redis-cluster.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';

const SECRET = 'Tr0ub4dor';
/** Short, so that tests of outages are short too, but a busy machine must not look like an outage. */
const TIMES = { commandTimeout: 500, outageTimeout: 1_500 } as const;
/** Callers that wait through an outage are not refused before. */
const NOT_BEFORE = TIMES.outageTimeout - 10;

const opened: LockService[] = [];
const lines: string[] = [];
const logger = {
  log: (line: string) => void lines.push(line),
  warn: (line: string) => void lines.push(line),
  error: (line: string) => void lines.push(line),
};

function open(options: RedisLockOptions): LockService {
  const locks = createLockService({ logger, shutdownTimeout: 50, ...TIMES, ...options });
  opened.push(locks);
  return locks;
}

/** How long a call took that failed with LockUnavailableError, in milliseconds. */
async function refusedAfter(call: () => Promise<unknown>): Promise<number> {
  const since = performance.now();
  expect(await errorOf(call())).toBeInstanceOf(LockUnavailableError);
  return performance.now() - since;
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map((locks) => locks.close()));
  lines.length = 0;
});

describe('while Redis is away', () => {
  let redis: RedisServer;

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterEach(async () => {
    if (!redis.running) await redis.start();
    redis.resume();
  });
  afterAll(() => redis.stop());

  const calls = (locks: LockService): (() => Promise<unknown>)[] => [
    () => locks.acquire('a'),
    () => locks.acquire('b', { type: 'fair' }),
    () => locks.acquire(['c', 'd']),
    () => locks.getFencedLock('e').lock(),
    () => locks.getMultiLock(locks.getLock('f'), locks.getFairLock('g')).lock(),
    () => locks.getSemaphore('h').acquire(),
    () => locks.getPermitExpirableSemaphore('i').acquire(),
    () => locks.getCountDownLatch('j').await(),
  ];

  it.each(['killed', 'stopped by SIGSTOP', 'cut off'] as const)(
    'because it is %s, callers are refused in time, and a later one as well',
    async (how) => {
      const proxy = await startTcpProxy(redis.port);
      const locks = open({ connection: proxy.url });
      await locks.getCountDownLatch('j').trySetCount(1);
      await locks.withLock('a', () => {});
      if (how === 'killed') await redis.kill();
      else if (how === 'cut off') proxy.cutHalfOpen();
      else redis.pause();
      for (const time of await Promise.all(calls(locks).map(refusedAfter))) {
        expect(time).toBeGreaterThan(NOT_BEFORE);
        expect(time).toBeLessThan(10_000);
      }
      expect(await refusedAfter(() => locks.acquire('a'))).toBeGreaterThan(NOT_BEFORE);
      await locks.close();
      await proxy.stop();
    },
  );

  it('from the start, callers are refused in time', async () => {
    await redis.kill();
    const locks = open({ connection: redis.url });
    for (const time of await Promise.all(calls(locks).map(refusedAfter))) expect(time).toBeLessThan(10_000);
  });

  it('callers that pause behind a holder are refused, because a PING finds out', async () => {
    const [locks, other] = [open({ connection: redis.url }), open({ connection: redis.url, commandTimeout: '2s' })];
    const holder = await other.acquire('order');
    const waiting = refusedAfter(() => locks.acquire('order'));
    await until(() => locks.engine.waiting('order') === 1);
    redis.pause();
    expect(await waiting).toBeLessThan(30_000);
    redis.resume();
    await holder.release();
  });

  it('a try is refused at once, as soon as that is known, and succeeds when Redis is back', async () => {
    const locks = open({ connection: redis.url, commandTimeout: '4s' });
    await locks.withLock('order', () => {});
    await redis.kill();
    await refusedAfter(() => locks.acquire('order', { waitTime: 0 }));
    expect(await refusedAfter(() => locks.acquire('order', { waitTime: 0 }))).toBeLessThan(3_600);
    await redis.start();
    await until(() =>
      locks.tryAcquire('order').then(
        (lease) => lease?.release().then(() => true) ?? false,
        () => false,
      ),
    );
  });

  it('a lease outlives an outage that is longer than outageTimeout, and shorter than the lease', async () => {
    const locks = open({ connection: redis.url });
    const lease = await locks.acquire('order');
    redis.pause();
    await refusedAfter(() => locks.acquire('another'));
    redis.resume();
    await until(() =>
      lease.extend('20s').then(
        () => true,
        () => false,
      ),
    );
    expect(lease.held).toBe(true);
    await lease.release();
  });

  describe('and comes back without its data, a lease is lost at once, not only when it would be renewed', () => {
    /** A third of this is far longer than the test. */
    const HOUR = { watchdogTimeout: '1h' } as const;
    const restart = async () => {
      await redis.kill();
      await redis.start();
    };

    it('if the process listens to its messages', async () => {
      const locks = open({ connection: redis.url, ...HOUR });
      const [renewed, fixed] = [await locks.acquire('order'), await locks.acquire('stock', { leaseTime: '1h' })];
      await until(async () => (await redis.client().pubsub('CHANNELS', 'nestjs_redis_lock_client:*')).length > 0);
      await restart();
      await until(() => !renewed.held && !fixed.held);
      expect(renewed.signal.aborted).toBe(true);
    });

    it('if a call has noticed the outage', async () => {
      // A process that stands still for longer than outageTimeout refuses its callers without a line about an outage.
      const locks = open({ connection: redis.url, ...HOUR, commandTimeout: 2_000, outageTimeout: 6_000 });
      const lost: unknown[] = [];
      locks.on('lost', ({ name }) => lost.push(name));
      const lease = await locks.acquire('order');
      const semaphore = locks.getPermitExpirableSemaphore('mail');
      await semaphore.trySetPermits(1);
      await semaphore.acquire();
      await redis.kill();
      await refusedAfter(() => locks.acquire('another'));
      await redis.start();
      await locks.withLock('another', { waitTime: '1m', outageTimeout: '1m' }, () => {});
      await until(() => !lease.held && lost.includes('mail'));
      expect(lines).toEqual(
        expect.arrayContaining([expect.stringMatching(/^redis 127\.0\.0\.1:\d+\/0 answers again, after \d+\.\d s$/)]),
      );
    });
  });

  it('callers with outageTimeout: Infinity wait until it is back', async () => {
    const locks = open({ connection: redis.url, outageTimeout: Number.POSITIVE_INFINITY });
    await redis.kill();
    const waiting = locks.acquire('order');
    await refusedAfter(() => locks.acquire('order', { outageTimeout: 300 }));
    await redis.start();
    await (await waiting).release();
  });

  it('one line says how many wait, and until when', async () => {
    const locks = open({ connection: redis.url, commandTimeout: 1_000, outageTimeout: 3_000 });
    await locks.withLock('a', () => {});
    redis.pause(); // not killed: a closed connection would be noticed before all three wait
    await Promise.all(['a', 'b', 'c'].map((name) => refusedAfter(() => locks.acquire(name))));
    redis.resume();
    const about = lines.filter((line) => line.includes('callers wait'));
    expect(about).toEqual([
      expect.stringMatching(
        /^redis 127\.0\.0\.1:\d+\/0 does not answer(?: \(.*\))?\. 3 callers wait, one of them for the lock 'a'\. If there is no answer by \d\d:\d\d:\d\d UTC, the first of them gets LockUnavailableError \(outageTimeout\)$/,
      ),
    ]);
  });
});

describe('a Redis that accepts no writes, but knows who holds a lock', () => {
  let redis: RedisServer;

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  // What a caller writes while it waits: the record of its client, the journal of waits, and a ticket.
  it.each(['reentrant', 'write'] as const)(
    'says busy of a held %s lock, although it refuses what waiting callers write about themselves',
    async (type) => {
      // A busy machine must not look like an outage.
      const patient = { connection: redis.url, commandTimeout: '1500ms', outageTimeout: '1500ms' } as const;
      const [locks, other] = [open(patient), open(patient)];
      const holder = await other.acquire(type, { type });
      await locks.withLock('mine', async () => {
        const waiting = [
          errorOf(locks.acquire(type, { type, waitTime: '5s' })),
          errorOf(locks.acquire(type, { type, waitTime: '4500ms' })),
        ];
        await until(() => locks.engine.waiting(type) === 2);
        await redis.client().config('SET', 'maxmemory', '1');
        for (const error of await Promise.all(waiting)) expect(error).toBeInstanceOf(LockBusyError);
        expect(await locks.tryAcquire(type, { type })).toBeNull();
      });
      expect(lines.filter((line) => /does not answer|refuses to take locks/.test(line))).toEqual([]);
      await redis.client().config('SET', 'maxmemory', '0');
      await holder.release();
    },
  );
});

describe('the log', () => {
  it('has one line when Redis is reached, with its version and the prefix, and none twice', async () => {
    const redis = await startRedis();
    const locks = open({ connection: redis.url, keyPrefix: 'shop:' });
    await until(() => lines.length > 0);
    await locks.withLock('order', () => {});
    await redis.restart();
    await until(() =>
      locks.isLocked('order').then(
        () => true,
        () => false,
      ),
    );
    const about = lines.filter((line) => line.includes('connected to'));
    expect(about).toEqual([
      expect.stringMatching(
        /^redis 127\.0\.0\.1:\d+\/0: connected to (Redis|Valkey) \d+\.\d+\.\d+ by (ioredis|node-redis), keyPrefix 'shop:'$/,
      ),
    ]);
    await redis.stop();
  });

  it('says what to do about a wrong password, and which Redis it is, without the password', async () => {
    const redis = await startRedis({ args: ['--requirepass', 'another-one'] });
    const locks = open({ connection: `redis://:${SECRET}@127.0.0.1:${redis.port}` });
    await until(() => lines.length > 0);
    expect(lines[0]).toMatch(
      /^redis 127\.0\.0\.1:\d+\/0: WRONGPASS .*: check the user and the password\. Reserved characters in a URL must be percent-encoded$/,
    );
    const error = await errorOf(locks.acquire('order'));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toMatch(/check the user and the password/);
    expect(lines.join() + error.message).not.toContain(SECRET);
    await locks.close();
    await redis.stop();
  });
});

describe('a password that is changed while the service runs', () => {
  let redis: RedisServer;
  /** It stays connected, whatever the password is. */
  let admin: Redis;

  beforeEach(async () => {
    redis = await startRedis();
    admin = redis.client();
    await admin.config('SET', 'requirepass', SECRET);
  });
  afterEach(() => redis.stop());

  const change = async (password: string) => {
    await admin.config('SET', 'requirepass', password);
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  };

  it('is an outage: callers wait until Redis accepts the old one again, or until outageTimeout', async () => {
    const locks = open({ connection: `redis://:${SECRET}@127.0.0.1:${redis.port}`, outageTimeout: '1s' });
    await locks.withLock('order', () => {});
    await change('another-one');
    const waiting = locks.acquire('order', { outageTimeout: '20s' });
    const time = await refusedAfter(() => locks.acquire('another'));
    expect(time).toBeGreaterThan(900);
    const error = await errorOf(locks.acquire('a third', { waitTime: 0 }));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toMatch(/WRONGPASS/);
    await change(SECRET);
    await (await waiting).release();
  });

  it('is a mistake in the settings if it was never right: callers are refused at once', async () => {
    const locks = open({ connection: `redis://:wrong@127.0.0.1:${redis.port}`, outageTimeout: '30s' });
    expect(await refusedAfter(() => locks.acquire('order'))).toBeLessThan(10_000);
  });
});

describe('a cluster of which one master and its replica are away', () => {
  it('refuses callers of their slots alone', async () => {
    const cluster = await startCluster(['--cluster-require-full-coverage', 'no']);
    try {
      const locks = open({ connection: { nodes: cluster.nodes } });
      const names = Array.from({ length: 60 }, (_, n) => `order:${n}`);
      for (const name of names.slice(0, 20)) await locks.withLock(name, () => {});
      const nodeOf = (name: string) => cluster.masterOf(slotOf(`lock:${name}`));
      const gone = await nodeOf(names[0]);
      const replica = await cluster.replicaOf(slotOf(`lock:${names[0]}`));
      const nodes = await Promise.all(names.map(nodeOf));
      for (const server of [replica, gone]) server.pause();
      const refused = refusedAfter(() => locks.acquire(names[0]));
      const elsewhere = names.filter((_, n) => nodes[n] !== gone);
      for (const name of elsewhere.slice(0, 5)) await (await locks.acquire(name, { outageTimeout: '20s' })).release();
      expect(await refused).toBeLessThan(20_000);
      for (const name of elsewhere.slice(0, 5)) await (await locks.acquire(name, { outageTimeout: '20s' })).release();
      for (const server of [replica, gone]) server.resume();
      await locks.close();
    } finally {
      await cluster.stop();
    }
  });
});

describe('a quorum', () => {
  it('works without a minority, and refuses callers in time without a majority', async () => {
    const servers = await startNodes(3);
    try {
      const locks = open({ quorum: servers.map(({ url }) => url) });
      await locks.withLock('order', () => {});
      servers[0].pause();
      for (let n = 0; n < 5; n++) await locks.withLock('order', () => {});
      const holder = await locks.acquire('order');
      expect(await locks.tryAcquire('order')).toBeNull();
      await holder.release();
      servers[1].pause();
      const [single, several] = await Promise.all([
        refusedAfter(() => locks.acquire('order')),
        refusedAfter(() => locks.acquire(['a', 'b'])),
      ]);
      for (const time of [single, several]) {
        expect(time).toBeGreaterThan(NOT_BEFORE);
        expect(time).toBeLessThan(10_000);
      }
      servers[1].resume();
      await until(() =>
        locks.tryAcquire('order').then(
          (lease) => lease?.release().then(() => true) ?? false,
          () => false,
        ),
      );
      servers[0].resume();
      await locks.close();
    } finally {
      await Promise.all(servers.map((server) => server.stop()));
    }
  });
});
