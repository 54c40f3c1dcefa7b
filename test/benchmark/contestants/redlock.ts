import { Redis } from 'ioredis';
import Redlock, { type Lock } from 'redlock';
import { type Contestant, LEASE_TIME, type LockClient, RETRY_DELAY } from './contestant.js';

export const redlock: Contestant = {
  name: 'redlock 5',
  package: 'redlock',
  waits: 'polls',
  does: 'lock',
  async open(port): Promise<LockClient<Lock>> {
    const redis = new Redis(port, '127.0.0.1', { lazyConnect: true });
    await redis.connect();
    const locks = new Redlock([redis], { retryCount: -1, retryDelay: RETRY_DELAY, retryJitter: 0 });
    return {
      acquire: (key) => locks.acquire([key], LEASE_TIME),
      release: (lock) => lock.release(),
      close: () => redis.quit(),
    };
  },
};
