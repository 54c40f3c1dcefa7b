import { Redlock, type RedlockInstance } from '@redis-kit/lock';
import { createClient } from 'redis';
import { countNodeRedis } from '../worker/sent-commands.js';
import { type Contestant, FOR_EVER, LEASE_TIME, type LockClient, RETRY_DELAY } from './contestant.js';

export const redisKitLock: Contestant = {
  name: '@redis-kit/lock',
  package: '@redis-kit/lock',
  waits: 'polls',
  does: 'lock; on node-redis',
  async open(port): Promise<LockClient<RedlockInstance>> {
    const redis = createClient({ url: `redis://127.0.0.1:${port}` });
    await redis.connect();
    countNodeRedis(redis);
    const options = { retryDelayMs: RETRY_DELAY, retryJitterMs: 0, maxRetryAttempts: FOR_EVER };
    const locks = new Redlock([redis as never], options);
    return {
      async acquire(key) {
        const lock = await locks.acquire(key, LEASE_TIME);
        if (lock === null) throw new Error(`${key} is busy`);
        return lock;
      },
      release: (lock) => lock.release(),
      close: () => redis.close(),
    };
  },
};
