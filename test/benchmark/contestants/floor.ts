import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { type Contestant, LEASE_TIME, type LockClient } from './contestant.js';

/** The usual script that releases a lock if it still has the value. */
export const COMPARE_AND_DELETE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

interface Held {
  readonly key: string;
  readonly value: string;
}

/** The least that an exclusive lock can cost: SET NX PX and a compare-and-delete script straight on ioredis. */
export const floor: Contestant = {
  name: 'floor',
  waits: 'nothing',
  does: 'SET NX PX and compare-and-delete straight on ioredis',
  async open(port): Promise<LockClient<Held>> {
    const redis = new Redis(port, '127.0.0.1', { lazyConnect: true });
    await redis.connect();
    const sha1 = (await redis.script('LOAD', COMPARE_AND_DELETE)) as string;
    const owner = randomBytes(8).toString('hex');
    let count = 0;
    return {
      async acquire(key) {
        const value = `${owner}:${++count}`;
        if ((await redis.set(key, value, 'PX', LEASE_TIME, 'NX')) !== 'OK') throw new Error(`${key} is busy`);
        return { key, value };
      },
      async tryFor(key) {
        const value = `${owner}:${++count}`;
        return (await redis.set(key, value, 'PX', LEASE_TIME, 'NX')) === 'OK' ? { key, value } : undefined;
      },
      release: ({ key, value }) => redis.evalsha(sha1, 1, key, value),
      close: () => redis.quit(),
    };
  },
};
