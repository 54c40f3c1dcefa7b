import { Redis } from 'ioredis';
import { createLock, IoredisAdapter, type Lock, type LockHandle } from 'redlock-universal';
import { type Contestant, FOR_EVER, LEASE_TIME, type LockClient, RETRY_DELAY } from './contestant.js';

interface Held {
  readonly lock: Lock;
  readonly handle: LockHandle;
}

/** In its `lean` mode, the fastest that it offers. */
export const redlockUniversal: Contestant = {
  name: 'redlock-universal',
  package: 'redlock-universal',
  waits: 'polls',
  does: "lock ('lean' mode)",
  async open(port): Promise<LockClient<Held>> {
    const redis = new Redis(port, '127.0.0.1', { lazyConnect: true });
    await redis.connect();
    const adapter = new IoredisAdapter(redis);
    const options = { adapter, ttl: LEASE_TIME, retryAttempts: FOR_EVER, retryDelay: RETRY_DELAY } as const;
    return {
      async acquire(key) {
        const lock = createLock({ ...options, key, performance: 'lean' });
        return { lock, handle: await lock.acquire() };
      },
      release: ({ lock, handle }) => lock.release(handle),
      close: () => redis.quit(),
    };
  },
};
