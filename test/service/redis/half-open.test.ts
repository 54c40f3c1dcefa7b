import { type LockProcess, openWorld } from '../../support/lock-world.js';
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js';
import { until } from '../../support/until.js';

/**
 * The limit, in milliseconds: a PING every 2 s, 2 s for its answer, and the same again for a busy machine. Without the
 * PING it took 10 to 12 s.
 */
const SERVED_WITHIN = 8_000;

/** Something that one process waits for until another one releases it. */
interface Awaited {
  readonly what: string;
  /** @returns a function that releases it */
  take(holder: LockProcess): Promise<() => Promise<unknown>>;
  wait(waiter: LockProcess): Promise<unknown>;
}

const lock = (type: 'reentrant' | 'fair' | 'read' | 'write', held: typeof type = type): Awaited => ({
  what: `${type} lock behind a ${held} lock`,
  take: async ({ locks }) => {
    const lease = await locks.acquire(`${type}:${held}`, { type: held });
    return () => lease.release();
  },
  wait: ({ locks }) => locks.acquire(`${type}:${held}`, { type }),
});

const AWAITED: readonly Awaited[] = [
  lock('reentrant'),
  lock('fair'),
  lock('read', 'write'),
  lock('write', 'read'),
  {
    what: 'permit of a semaphore',
    take: async ({ locks }) => {
      const semaphore = locks.getSemaphore('semaphore');
      await semaphore.trySetPermits(1);
      await semaphore.acquire();
      return () => semaphore.release();
    },
    wait: ({ locks }) => locks.getSemaphore('semaphore').acquire(),
  },
  {
    what: 'permit with a lease',
    take: async ({ locks }) => {
      const semaphore = locks.getPermitExpirableSemaphore('permits');
      await semaphore.trySetPermits(1);
      const id = await semaphore.acquire();
      return () => semaphore.release(id);
    },
    wait: ({ locks }) => locks.getPermitExpirableSemaphore('permits').acquire(),
  },
  {
    what: 'latch',
    take: async ({ locks }) => {
      const latch = locks.getCountDownLatch('latch');
      await latch.trySetCount(1);
      return () => latch.countDown();
    },
    wait: ({ locks }) => locks.getCountDownLatch('latch').await(),
  },
];

describe('waiters whose subscriptions are on a connection that has become half open', () => {
  const world = openWorld('Redis');
  let proxy: TcpProxy;
  let holder: LockProcess;
  let waiter: LockProcess;

  beforeEach(async () => {
    await world.redis.client().flushall();
    proxy = await startTcpProxy(world.redis.port);
    holder = await world.process();
    waiter = await world.process({ connection: proxy.url });
  });
  afterEach(() => proxy.stop());

  /** Lets all of them wait, breaks the connection of their subscriptions, and releases what they wait for. */
  const servedAfter = async (break_: () => void) => {
    const release = await Promise.all(AWAITED.map(({ take }) => take(holder)));
    const waiting = AWAITED.map(({ wait }) => wait(waiter));
    await until(async () => {
      const info = (await world.redis.client().info('clients')).match(/pubsub_clients:(\d+)/);
      return Number(info?.[1] ?? 1) > 0 && proxy.live > 1;
    });
    await new Promise((resolve) => setTimeout(resolve, 700)); // each has checked once more, and sleeps
    break_();
    await Promise.all(release.map((giveBack) => giveBack()));
    const since = performance.now();
    const times = waiting.map(async (served, i) => {
      await served;
      return [AWAITED[i].what, Math.round(performance.now() - since)] as const;
    });
    return Object.fromEntries(await Promise.all(times));
  };

  const late = (times: Record<string, number>) => Object.entries(times).filter(([, time]) => time > SERVED_WITHIN);

  it('are served within seconds', async () => {
    const times = await servedAfter(() => proxy.cutHalfOpenAfter(/subscribe/i));
    expect(late(times)).toEqual([]);
  });

  it('are served within seconds, although nobody can subscribe again', async () => {
    const times = await servedAfter(() => {
      proxy.cutHalfOpenAfter(/subscribe/i);
      proxy.dropReplies({ after: /subscribe/i });
    });
    expect(late(times)).toEqual([]);
    await proxy.heal();
  });
});
