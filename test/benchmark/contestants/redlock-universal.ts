import { Redis } from 'ioredis';
import { type Contestant, FOR_EVER, LEASE_TIME, type LockClient, RETRY_DELAY } from './contestant.js';

/**
 * The part of the library that is used here. It does not support the oldest Node.js that this library supports, so only
 * `npm run bench` installs it.
 */
interface RedlockUniversal {
  readonly IoredisAdapter: new (redis: Redis) => object;
  createLock(options: object): Lock;
}

interface Lock {
  /** @throws Error when no attempt is left */
  acquire(): Promise<object>;
  release(handle: object): Promise<unknown>;
}

interface Held {
  readonly lock: Lock;
  readonly handle: object;
}

const PACKAGE: string = 'redlock-universal';

/** Uses its `lean` mode, the fastest one. */
export const redlockUniversal: Contestant = {
  name: 'redlock-universal',
  package: PACKAGE,
  waits: 'polls',
  does: "lock ('lean' mode)",
  async open(port): Promise<LockClient<Held>> {
    const { IoredisAdapter, createLock }: RedlockUniversal = await import(PACKAGE);
    const redis = new Redis(port, '127.0.0.1', { lazyConnect: true });
    await redis.connect();
    const adapter = new IoredisAdapter(redis);
    const options = { adapter, ttl: LEASE_TIME, retryAttempts: FOR_EVER, retryDelay: RETRY_DELAY };
    return {
      async acquire(key) {
        const lock = createLock({ ...options, key, performance: 'lean' });
        return { lock, handle: await lock.acquire() };
      },
      async tryFor(key, waitTime) {
        const retryAttempts = Math.ceil(waitTime / RETRY_DELAY);
        const lock = createLock({ ...options, retryAttempts, key, performance: 'lean' });
        try {
          return { lock, handle: await lock.acquire() };
        } catch (error) {
          if ((error as Error).name === 'LockAcquisitionError') return undefined;
          throw error;
        }
      },
      release: ({ lock, handle }) => lock.release(handle),
      close: () => redis.quit(),
    };
  },
};
