import { Redis } from 'ioredis';
import { Mutex } from 'redis-semaphore';
import { type Contestant, FOR_EVER, LEASE_TIME, type LockClient, RETRY_DELAY } from './contestant.js';

export const redisSemaphore: Contestant = {
  name: 'redis-semaphore',
  package: 'redis-semaphore',
  waits: 'polls',
  does: 'lock, renewal by a timer a lock',
  async open(port): Promise<LockClient<Mutex>> {
    const redis = new Redis(port, '127.0.0.1', { lazyConnect: true });
    await redis.connect();
    const options = { lockTimeout: LEASE_TIME, acquireTimeout: FOR_EVER, retryInterval: RETRY_DELAY };
    return {
      async acquire(key) {
        const mutex = new Mutex(redis, key, options);
        await mutex.acquire();
        return mutex;
      },
      async tryFor(key, waitTime) {
        const mutex = new Mutex(redis, key, { ...options, acquireTimeout: Math.max(1, waitTime) });
        return (await mutex.tryAcquire()) ? mutex : undefined;
      },
      release: (mutex) => mutex.release(),
      close: () => redis.quit(),
    };
  },
};
