import { once } from 'node:events';
import { Redis } from 'ioredis';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { startProcess } from '../../support/processes/start-process.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';

/** The most that may hold the lock. */
const MOST = 3;
const LEASE = 4_000;

describe('a lock that n may hold, on Redis', () => {
  let server: RedisServer;
  let redis: Redis;
  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.url);
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });

  /** Everything but what tokens are drawn from, and the records of clients. */
  const keys = async () => (await redis.keys('*')).filter((key) => !/_clock$|_client|_lock_token:/.test(key));

  it('serves processes that die while they hold it and wait for it: their places are free when their leases end', async () => {
    const args = [server.url, 'export', String(MOST), String(LEASE)];
    const crowd = await Promise.all([1, 2, 3, 4, 5, 6].map(() => startProcess('permit-crowd.ts', ...args)));
    const entries = async () => Number(await redis.get('entries'));
    await until(async () => (await entries()) > 100);
    for (const { child } of crowd.slice(0, 3)) child.kill('SIGKILL');
    const since = performance.now();
    const before = await entries();
    const locks = createLockService({ connection: server.url, waitTime: '30s', watchdogTimeout: LEASE });
    await (await locks.acquire('export', { permits: MOST })).release();
    await until(async () => (await entries()) > before + 100);
    expect(performance.now() - since).toBeLessThan(LEASE + 40_000);
    const rest = crowd.slice(3).map(async ({ child }) => {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      expect((await ended)[0]).toBe(0);
    });
    await Promise.all(rest);
    expect(Number(await redis.get('most'))).toBe(MOST);
    await locks.close();
    await until(async () => (await keys()).every((key) => /^(entries|most|bodies)$/.test(key)));
  });
});
