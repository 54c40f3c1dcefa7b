import type { Redis } from 'ioredis';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { runCli } from '../../cli/run-cli.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';

/** A Redis that is also used as a cache, and is full. */
describe('a Redis that has no memory left', () => {
  it('evicts a lock that is held, with the policy of a cache, and gives it to a second owner', async () => {
    const redis = await startFull('allkeys-lru');
    const warnings: string[] = [];
    const log = (message: string) => void warnings.push(message);
    const [one, other] = [1, 2].map(() =>
      createLockService({ connection: redis.url, shutdownTimeout: 100, logger: { warn: log, error: log } }),
    );
    const first = await one.acquire('stock', { leaseTime: '1m' });
    await fill(redis.client(), 'lock:stock');
    const second = await other.acquire('stock', { leaseTime: '1m', waitTime: 0 });
    expect([first.held, second.held]).toEqual([true, true]);
    // Users are warned before it happens: when the service starts, and by the doctor.
    expect(warnings.join('\n')).toMatch(/maxmemory-policy is 'allkeys-lru'.*grant them twice/);
    const { code, stdout } = await runCli(['doctor'], redis.url);
    expect(stdout).toMatch(/WRONG +memory +maxmemory-policy is 'allkeys-lru'/);
    expect(code).toBe(5);
    await Promise.all([one.close(), other.close()]);
    await redis.stop();
  });

  it('keeps it with noeviction, and refuses new locks', async () => {
    const redis = await startFull('noeviction');
    const [one, other] = [1, 2].map(() =>
      createLockService({ connection: redis.url, shutdownTimeout: 100, logger: { warn: () => {}, error: () => {} } }),
    );
    const first = await one.acquire('stock', { leaseTime: '1m' });
    await expect(fill(redis.client(), 'lock:stock')).rejects.toThrow(/OOM/);
    expect(await other.tryAcquire('stock', { waitTime: 0 })).toBeNull();
    expect(first.held).toBe(true);
    await first.release();
    const { stdout } = await runCli(['doctor'], redis.url);
    // New locks are refused, and nothing else is wrong.
    expect(stdout.match(/WRONG.*/g)).toEqual([expect.stringMatching(/^WRONG +memory +Redis has no memory left/)]);
    await Promise.all([one.close(), other.close()]);
    await redis.stop();
  });

  function startFull(policy: string): Promise<RedisServer> {
    return startRedis({ args: ['--maxmemory', '4mb', '--maxmemory-policy', policy] });
  }

  /** Writes until this key has been evicted. Fails if Redis refuses a write. */
  async function fill(client: Redis, key: string): Promise<void> {
    for (let n = 0; n < 100_000; n += 100) {
      const pipeline = client.pipeline();
      for (let i = n; i < n + 100; i++) pipeline.set(`page:${i}`, 'x'.repeat(1_000));
      for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error;
      if ((await client.exists(key)) === 0) return;
    }
    throw new Error('the lock was not evicted');
  }
});
