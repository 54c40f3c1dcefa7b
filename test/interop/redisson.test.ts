import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { LockType } from '../../lib/backends/lock-backend.js';
import { createLockService } from '../../lib/service/create-lock-service.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { RELEASE } from '../support/release-under-test.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';
import { RedissonPeer } from './redisson-peer.js';

/**
 * A wake-up by a message takes one or two milliseconds; by the TTL it would take half a minute. The margin is for slow
 * machines.
 */
const PROMPT = 5_000;
/** How often a wake-up is measured. The median counts, so that one garbage collection does not matter. */
const SAMPLES = 9;

let server: RedisServer;
let java: RedissonPeer;
let locks: LockService;
let redis: Redis;
let names = 0;
let name: string;
let key: string;

beforeAll(async () => {
  server = await startRedis();
  java = await RedissonPeer.start(server.port);
  locks = createLockService({ connection: server.url, release: RELEASE });
  redis = server.client();
}, 60_000);

afterAll(async () => {
  await locks?.close();
  await java?.stop();
  await server?.stop();
});

beforeEach(() => {
  name = `interop:${++names}`;
  key = `lock:${name}`;
});

const median = (values: number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const lockedByJava = () => until(async () => (await redis.exists(key)) === 1);

/** How long after Java's unlock this process gets the lock. */
async function wakesNode(kind: string, type: LockType): Promise<number> {
  await java.run('holder', 'lock', key, kind, 30_000);
  let granted = 0;
  const waiting = locks.withLock(name, { type, waitTime: 20_000 }, () => {
    granted = Date.now();
  });
  await until(async () => Number(await redis.pubsub('NUMPAT')) > 0 || (await anySubscribed()));
  await sleep(20);
  const { at } = await java.run('holder', 'unlock', key, kind);
  await waiting;
  return granted - at;
}

/** How long after the release here Java gets the lock. */
async function wakesJava(kind: string, type: LockType): Promise<number> {
  const lease = await locks.acquire(name, { type });
  const waiting = java.run('waiter', 'tryLock', key, kind, 20_000, 30_000);
  await until(async () => anySubscribed());
  await sleep(20);
  const released = Date.now();
  await lease.release();
  const { result, at } = await waiting;
  expect(result).toBe('true');
  await java.run('waiter', 'unlock', key, kind);
  return at - released;
}

async function anySubscribed(): Promise<boolean> {
  const channels = (await redis.pubsub('CHANNELS', `*${key}*`)) as string[];
  return channels.length > 0;
}

const KINDS: readonly (readonly [string, LockType])[] = [
  ['reentrant', 'reentrant'],
  ['fair', 'fair'],
  ['fenced', 'fenced'],
  ['write', 'write'],
];

describe.each(KINDS)('a %s lock shared with Redisson', (kind, type) => {
  it('is busy here while Java holds it, and free after', async () => {
    await java.run('one', 'lock', key, kind, 30_000);
    expect(await locks.tryAcquire(name, { type })).toBeNull();
    await java.run('one', 'unlock', key, kind);
    const lease = await locks.tryAcquire(name, { type });
    expect(lease).not.toBeNull();
    await lease?.release();
  });

  it('is busy in Java while it is held here, and free after', async () => {
    const lease = await locks.acquire(name, { type });
    expect((await java.run('one', 'tryLock', key, kind, 0, 1_000)).result).toBe('false');
    expect((await java.run('one', 'isLocked', key, kind)).result).toBe('true');
    await expect(java.run('one', 'unlock', key, kind)).rejects.toThrow('IllegalMonitorStateException');
    expect(lease.held).toBe(true);
    await lease.release();
    expect((await java.run('one', 'tryLock', key, kind, 0, 1_000)).result).toBe('true');
    await java.run('one', 'unlock', key, kind);
  });

  it("wakes a waiter here by Java's unlock, not by the lease's end", async () => {
    const delays: number[] = [];
    for (let i = 0; i < SAMPLES; i++) delays.push(await wakesNode(kind, type));
    expect(median(delays)).toBeLessThan(PROMPT);
  });

  it('wakes a waiter in Java by a release here', async () => {
    const delays: number[] = [];
    for (let i = 0; i < SAMPLES; i++) delays.push(await wakesJava(kind, type));
    expect(median(delays)).toBeLessThan(PROMPT);
  });

  it('excludes both sides under contention', async () => {
    const counter = `counter:${name}`;
    const rounds = 60;
    const there = ['a', 'b', 'c'].map((thread) => java.run(`${name}-${thread}`, 'contend', key, kind, counter, rounds));
    const here = Array.from({ length: 4 }, async () => {
      for (let i = 0; i < rounds; i++) {
        await locks.withLock(name, { type }, async () => {
          const value = Number((await redis.get(counter)) ?? 0);
          await redis.set(counter, String(value + 1));
        });
      }
    });
    await Promise.all([...there, ...here]);
    expect(await redis.get(counter)).toBe(String(7 * rounds));
    expect(await redis.exists(key)).toBe(0);
  }, 60_000);

  it('is taken from a Java process that lost it, and kept from one that renews it', async () => {
    await java.run('one', 'lock', key, kind, 300);
    const lease = await locks.acquire(name, { type, waitTime: 10_000 });
    expect(lease.held).toBe(true);
    await lease.release();
  });
});

describe('a read/write lock shared with Redisson', () => {
  it('lets readers of both sides in together, and keeps writers of both out', async () => {
    const reader = await locks.acquire(name, { type: 'read' });
    expect((await java.run('one', 'tryLock', key, 'read', 0, 30_000)).result).toBe('true');
    expect((await java.run('two', 'tryLock', key, 'write', 0, 30_000)).result).toBe('false');
    await reader.release();
    expect(await locks.tryAcquire(name, { type: 'write' })).toBeNull();
    const second = await locks.tryAcquire(name, { type: 'read' });
    expect(second).not.toBeNull();
    await second?.release();
    await java.run('one', 'unlock', key, 'read');
    const writer = await locks.tryAcquire(name, { type: 'write' });
    expect(writer).not.toBeNull();
    expect((await java.run('one', 'tryLock', key, 'read', 0, 30_000)).result).toBe('false');
    await writer?.release();
    expect(await redis.keys(`*${key}*`)).toEqual([]);
  });

  it('wakes readers of both sides when the writer leaves, and a writer when the last reader does', async () => {
    await java.run('writer', 'lock', key, 'write', 30_000);
    const here = locks.acquire(name, { type: 'read', waitTime: 20_000 });
    const there = java.run('reader', 'tryLock', key, 'read', 20_000, 30_000);
    await sleep(100);
    await java.run('writer', 'unlock', key, 'write');
    const lease = await here;
    expect((await there).result).toBe('true');
    const writer = java.run('writer', 'tryLock', key, 'write', 20_000, 30_000);
    await java.run('reader', 'unlock', key, 'read');
    await lease.release();
    expect((await writer).result).toBe('true');
    await java.run('writer', 'unlock', key, 'write');
  });
});

describe('a fenced lock shared with Redisson', () => {
  it('draws the tokens of both sides from one growing sequence', async () => {
    const tokens: number[] = [];
    for (let i = 0; i < 5; i++) {
      const lease = await locks.acquire(name, { type: 'fenced' });
      tokens.push(lease.fencingToken);
      await lease.release();
      tokens.push(Number((await java.run('one', 'lockAndGetToken', key)).result));
      await java.run('one', 'unlock', key, 'fenced');
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
  });
});

describe('a fair lock shared with Redisson', () => {
  it('serves waiters of both sides in the order of their arrival, and nobody waits for a time-out', async () => {
    const holder = await locks.acquire(name, { type: 'fair' });
    const order: string[] = [];
    const served: Promise<unknown>[] = [];
    const queue = `redisson_lock_queue:{${key}}`;
    for (let i = 0; i < 6; i++) {
      if (i % 2 === 0) {
        served.push(locks.withLock(name, { type: 'fair' }, () => void order.push(`${i}`)));
      } else {
        const thread = `${name}-${i}`;
        served.push(
          java.run(thread, 'tryLock', key, 'fair', 20_000, 30_000).then(async ({ result }) => {
            expect(result).toBe('true');
            order.push(`${i}`);
            await java.run(thread, 'unlock', key, 'fair');
          }),
        );
      }
      await until(async () => (await redis.llen(queue)) === i + 1);
    }
    const start = performance.now();
    await holder.release();
    await Promise.all(served);
    expect(order).toEqual(['0', '1', '2', '3', '4', '5']);
    expect(performance.now() - start).toBeLessThan(4_000);
  }, 60_000);
});

describe('a semaphore shared with Redisson', () => {
  it('has one stock of permits, and wakes waiters of either side', async () => {
    const semaphore = locks.getSemaphore(name);
    expect((await java.run('one', 'trySetPermits', key, 2)).result).toBe('true');
    expect(await semaphore.trySetPermits(5)).toBe(false);
    await java.run('one', 'acquirePermits', key, 2);
    expect(await semaphore.tryAcquire()).toBe(false);
    const here = semaphore.acquire();
    await until(async () => anySubscribed());
    await java.run('one', 'releasePermits', key, 1);
    await here;
    const there = java.run('two', 'acquirePermits', key, 1);
    await sleep(50);
    await semaphore.release();
    await there;
    expect((await java.run('one', 'availablePermits', key)).result).toBe('0');
  });

  it('gives expirable permits by ids that both sides understand', async () => {
    const semaphore = locks.getPermitExpirableSemaphore(name);
    await java.run('one', 'trySetExpirablePermits', key, 2);
    const theirs = (await java.run('one', 'acquireExpirable', key, 30_000)).result;
    const ours = await semaphore.acquire('30s');
    expect(ours).toMatch(/^[0-9a-f]{32}$/);
    expect(await semaphore.tryAcquire()).toBeNull();
    await semaphore.release(ours as string);
    await java.run('one', 'releaseExpirable', key, theirs);
    expect((await java.run('one', 'availableExpirable', key)).result).toBe('2');
  });
});

describe('a count-down latch shared with Redisson', () => {
  it('opens for both sides when either counts down to zero', async () => {
    const latch = locks.getCountDownLatch(name);
    expect(await latch.trySetCount(2)).toBe(true);
    expect((await java.run('one', 'trySetCount', key, 3)).result).toBe('false');
    const here = latch.await(20_000);
    const there = java.run('two', 'awaitLatch', key, 20_000);
    await sleep(100);
    await java.run('one', 'countDown', key);
    await latch.countDown();
    expect(await here).not.toBe(false);
    expect((await there).result).toBe('true');
  });
});

it('frees the lock of a Java process that was killed, within its lease', async () => {
  const doomed = await RedissonPeer.start(server.port);
  await doomed.run('one', 'lock', key, 'reentrant', 1_500);
  doomed.kill();
  await lockedByJava();
  const lease = await locks.acquire(name, { waitTime: 15_000 });
  expect(lease.held).toBe(true);
  await lease.release();
}, 60_000);
