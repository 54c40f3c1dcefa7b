import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { inTime } from './in-time.js';
import { TRIES } from './one-try-each.js';

const COMMAND_TIMEOUT = 1_000;

describe('a call that tries once', () => {
  let redis: RedisServer;
  let proxy: TcpProxy;
  const opened: LockService[] = [];

  beforeAll(async () => {
    redis = await startRedis();
  });
  beforeEach(async () => {
    await redis.client().flushall();
    proxy = await startTcpProxy(redis.port);
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((locks) => locks.close()));
    await proxy.stop();
  });
  afterAll(() => redis.stop());

  /** A service whose connections have been used for everything before, and which then rests. */
  const rested = async (): Promise<LockService> => {
    const logger = { warn: () => {}, error: () => {} };
    const locks = createLockService({
      connection: proxy.url,
      commandTimeout: COMMAND_TIMEOUT,
      shutdownTimeout: 50,
      logger,
    });
    opened.push(locks);
    await until(async () => {
      const all = await Promise.all(Object.values(TRIES).map((attempt) => attempt(locks).catch(() => false)));
      return all.every(Boolean);
    });
    return locks;
  };

  /** The names of the tries that did not succeed, with their reasons. */
  const failed = async (locks: LockService): Promise<unknown[]> => {
    const outcomes = await Promise.all(
      Object.entries(TRIES).map(async ([name, attempt]) => {
        const since = performance.now();
        const outcome = await attempt(locks).catch((error: Error) => error.message);
        const time = Math.round(performance.now() - since);
        return outcome === true && time < 10 * COMMAND_TIMEOUT ? [] : [`${name} after ${time} ms: ${outcome}`];
      }),
    );
    return outcomes.flat();
  };

  it('is made once more when a firewall has dropped the connections', async () => {
    const lines = await inTime(async () => {
      const locks = await rested();
      proxy.cutHalfOpen();
      await proxy.heal();
      return failed(locks);
    });
    expect(lines).toEqual([]);
  });

  it('is made once more when other jobs were under way on the connection that a firewall has dropped', async () => {
    const outages = await inTime(async () => {
      const locks = await rested();
      proxy.cutHalfOpen();
      await proxy.heal();
      const jobs: Promise<unknown[]>[] = [];
      for (let n = 0; n < 8; n++) {
        jobs.push(failed(locks));
        await new Promise((resolve) => setTimeout(resolve, 4));
      }
      // Jobs of the same names exclude each other, so some find the lock busy. None is told of an outage.
      return (await Promise.all(jobs)).flat().filter((line) => !/: (false|.*busy.*)$/.test(String(line)));
    });
    expect(outages).toEqual([]);
  });

  it('is made once more when the connection breaks under it', async () => {
    const locks = await rested();
    for (const [name, attempt] of Object.entries(TRIES)) {
      const { droppedReplies } = proxy;
      proxy.dropReplies({ close: true });
      const outcome = attempt(locks).catch((error: Error) => error.message);
      await until(() => proxy.droppedReplies > droppedReplies);
      await proxy.heal();
      expect([name, await outcome]).toEqual([name, true]);
    }
  });

  it('is made once more when the server has become a replica of another one', async () => {
    const master = await startRedis();
    try {
      for (const name of Object.keys(TRIES)) {
        proxy.leadTo(redis.port);
        proxy.disconnect();
        const locks = await rested();
        await redis.client().replicaof('127.0.0.1', String(master.port));
        proxy.leadTo(master.port);
        expect([name, await TRIES[name](locks).catch((error: Error) => error.message)]).toEqual([name, true]);
        await redis.client().replicaof('NO', 'ONE');
        await locks.close();
      }
    } finally {
      await redis.client().replicaof('NO', 'ONE');
      await master.stop();
    }
  });

  it('fails soon after one commandTimeout when there is no connection to be had', async () => {
    const locks = await rested();
    proxy.cutHalfOpen();
    const since = performance.now();
    const lines = await failed(locks);
    expect(lines).toHaveLength(Object.keys(TRIES).length);
    expect(performance.now() - since).toBeLessThan(6 * COMMAND_TIMEOUT);
  });
});
