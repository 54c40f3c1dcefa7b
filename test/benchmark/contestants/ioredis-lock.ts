import { createLock, type Lock } from '@microfleet/ioredis-lock';
import { Redis } from 'ioredis';
import { type Contestant, FOR_EVER, LEASE_TIME, type LockClient, RETRY_DELAY } from './contestant.js';

export const ioredisLock: Contestant = {
  name: '@microfleet/ioredis-lock',
  package: '@microfleet/ioredis-lock',
  waits: 'polls',
  does: 'lock',
  async open(port): Promise<LockClient<Lock>> {
    const redis = new Redis(port, '127.0.0.1', { lazyConnect: true });
    await redis.connect();
    const config = { timeout: LEASE_TIME, retries: FOR_EVER, delay: RETRY_DELAY, jitter: 1 };
    return {
      acquire: (key) => createLock(redis, config).acquire(key),
      release: (lock) => lock.release(),
      close: () => redis.quit(),
    };
  },
};
