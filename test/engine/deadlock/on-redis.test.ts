import { setTimeout as sleep } from 'node:timers/promises';
import { LockDeadlockError } from '../../../lib/engine/errors.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { errorOf, latch } from '../../support/section.js';
import { startCluster } from '../../support/servers/redis-cluster.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';

const WAITS = 'nestjs_redis_lock_waits*';
const silent = { warn: () => {}, error: () => {} };

/** Two services, each of which holds a lock and asks for the lock of the other one. The second asks slightly later. */
function deadlock(one: LockService, two: LockService): Promise<PromiseSettledResult<void>[]> {
  const [first, second] = [latch(), latch()];
  return Promise.allSettled([
    one.withLock('A', async () => {
      first.open();
      await second.promise;
      await one.withLock('B', async () => {});
    }),
    two.withLock('B', async () => {
      second.open();
      await first.promise;
      await sleep(700);
      await two.withLock('A', async () => {});
    }),
  ]);
}

const ONE_REFUSED = [{ status: 'fulfilled' }, { status: 'rejected', reason: expect.any(LockDeadlockError) }];

describe('the detection of deadlocks on Redis', () => {
  let redis: RedisServer;
  const services: LockService[] = [];

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterEach(async () => {
    await Promise.all(services.splice(0).map((locks) => locks.close()));
    await redis.client().flushall();
  });
  afterAll(() => redis.stop());

  function open(count: number, options: object = {}): LockService[] {
    const connection = redis.url;
    const opened = Array.from({ length: count }, () => createLockService({ connection, logger: silent, ...options }));
    services.push(...opened);
    return opened;
  }

  it('writes nothing for a caller that waits for less than a second, holds nothing, or holds by no scope', async () => {
    const [one, two] = open(2);
    const client = redis.client();
    const held = await two.acquire('busy');
    const lease = await one.acquire('unscoped');
    const waits = [one.acquire('busy'), one.withLock('busy', async () => {})];
    await sleep(1_800);
    const nested = one.withLock('outer', () => one.withLock('busy', async () => {}));
    await sleep(500);
    expect(await client.keys(WAITS)).toEqual([]);
    await held.release();
    await (await waits[0])?.release();
    await Promise.all([waits[1], nested, lease.release()]);
    expect(await client.keys(WAITS)).toEqual([]);
  });

  it('writes down a longer wait, by what its caller holds, and removes it at its end', async () => {
    const [one, two] = open(2);
    const client = redis.client();
    const held = await two.acquire('busy');
    const owners: string[] = [];
    const nested = one.withLock('outer', async ({ owner }) => {
      owners.push(owner);
      await one.withLock('inner', async (inner) => {
        owners.push(inner.owner);
        await one.withLock('busy', async () => {});
      });
    });
    await until(async () => (await client.keys(WAITS)).length === 2);
    const keys = owners.map((owner) => `nestjs_redis_lock_waits:{${owner}}`);
    expect((await client.keys(WAITS)).sort()).toEqual(keys.sort());
    const [record] = await client.hvals(keys[0]);
    expect(JSON.parse(record)).toMatchObject({ lock: 'busy', owner: owners[1], holders: [held.owner] });
    expect(await client.pttl(keys[0])).toBeLessThanOrEqual(2_000);
    await held.release();
    await nested;
    await until(async () => (await client.keys(WAITS)).length === 0);
  });

  it('hands a lock on under another owner when its holder has waited for long', async () => {
    const [one, two] = open(2);
    const ownersOf = async (wait: number) => {
      const held = await two.acquire('busy');
      const owners: string[] = [];
      const inside = latch();
      const nested = one.withLock('outer', async ({ owner }) => {
        owners.push(owner);
        inside.open();
        await one.withLock('busy', async () => {});
        await until(() => one.inspect('outer').then(({ waiting }) => waiting === 1));
      });
      await inside.promise;
      const next = one.withLock('outer', async ({ owner }) => void owners.push(owner));
      await sleep(wait);
      await held.release();
      await Promise.all([nested, next]);
      return owners;
    };
    const [first, second] = await ownersOf(1_600);
    expect(second).not.toBe(first);
  });

  it('continues after Redis was paused', async () => {
    const [one, two] = open(2, { commandTimeout: 1_000 });
    const results = deadlock(one, two);
    await sleep(1_200);
    redis.pause();
    await sleep(2_500);
    redis.resume();
    expect(await results).toMatchObject(ONE_REFUSED);
  });

  it('is reported to fail if a permission is missing, and harms nothing', async () => {
    const keys = [
      '~lock:*',
      '~redisson_lock_*',
      '~nestjs_redis_lock_clock',
      '~nestjs_redis_lock_client*',
      '~nestjs_redis_lock_turn*',
    ];
    const rules = ['on', '>secret', ...keys, '&*', '+@all'];
    await redis.client().call('ACL', 'SETUSER', 'short', 'reset', ...rules);
    const warnings: string[] = [];
    const logger = { warn: (message: string) => void warnings.push(message), error: () => {} };
    const [one] = open(1, { connection: redis.url.replace('//', '//short:secret@'), logger });
    const [two] = open(1);
    const held = await two.acquire('busy');
    const nested = one.withLock('outer', () =>
      one.withLock('busy', { waitTime: Infinity }, async () => 'done' as const),
    );
    await until(() => warnings.length > 0);
    await sleep(800);
    await held.release();
    expect(await nested).toBe('done');
    expect(warnings).toEqual([expect.stringMatching(/^Deadlocks cannot be detected: .*NOPERM/)]);
  });

  it('is reported to fail once while Redis is out of memory, and once more if that happens again later', async () => {
    const warnings: string[] = [];
    const logger = { warn: (message: string) => void warnings.push(message), error: () => {} };
    const [one] = open(1, { logger });
    const [two] = open(1);
    const admin = redis.client();
    const held = await two.acquire('busy');
    const inside = latch();
    const nested = one.withLock('outer', async () => {
      inside.open();
      return await one.withLock('busy', { waitTime: Infinity }, async () => 'done' as const);
    });
    await inside.promise;
    try {
      for (const times of [1, 2]) {
        await admin.config('SET', 'maxmemory', '1');
        await until(() => warnings.length === times);
        await sleep(1_500); // several heartbeats
        await admin.config('SET', 'maxmemory', '0');
        await until(async () => (await admin.keys(WAITS)).length > 0);
        await sleep(2_000); // an old wait is followed once a second
      }
    } finally {
      await admin.config('SET', 'maxmemory', '0');
    }
    await held.release();
    expect(await nested).toBe('done');
    expect(warnings).toEqual(Array(2).fill(expect.stringMatching(/^Deadlocks cannot be detected: .*OOM/)));
  });

  it('reads what others have written with care', async () => {
    const [one, two] = open(2);
    const held = await two.acquire('busy');
    const client = redis.client();
    const forged = ['', 'null', '[]', '{"lock":1}', '{"lock":"x","owner":"y","holders":[1],"began":0,"beat":0}'];
    const key = `nestjs_redis_lock_waits:{${held.owner}}`;
    for (const [i, text] of forged.entries()) await client.hset(key, `forged:${i}`, text);
    const nested = one.withLock('outer', () =>
      one.withLock('busy', { waitTime: Infinity }, async () => 'done' as const),
    );
    await sleep(2_000);
    await held.release();
    expect(await nested).toBe('done');
    await client.del(key);
  });

  it('works on a cluster, over slots', async () => {
    const cluster = await startCluster();
    try {
      const [one, two] = open(2, { connection: { nodes: cluster.nodes } });
      expect(await deadlock(one, two)).toMatchObject(ONE_REFUSED);
      await Promise.all([one.close(), two.close()]);
    } finally {
      await cluster.stop();
    }
  });

  it('ends the wait of exactly one of many callers that wait for each other', async () => {
    const [one, two] = open(2);
    const late = Array.from({ length: 20 }, (_, i) =>
      sleep(300).then(() => one.withLock(`late:${i}`, () => one.withLock('A', async () => 'late' as const))),
    );
    expect(await deadlock(one, two)).toMatchObject(ONE_REFUSED);
    expect(await Promise.all(late)).toEqual(Array(20).fill('late'));
  });

  it('ends a caller that tries with a waitTime by the same error', async () => {
    const [one, two] = open(2);
    const [inside, other] = [latch(), latch()];
    const first = one.withLock('A', async () => {
      inside.open();
      await other.promise;
      await one.withLock('B', async () => {});
    });
    const error = errorOf(
      two.withLock('B', async () => {
        other.open();
        await inside.promise;
        await sleep(700);
        await two.tryAcquire('A', { waitTime: '60s' });
      }),
    );
    expect(await error).toBeInstanceOf(LockDeadlockError);
    await first;
  });
});
