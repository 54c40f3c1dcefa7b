import { createClient } from 'redis';
import { lock, type ReleaseFunc } from 'simple-redis-mutex';
import { countNodeRedis } from '../worker/sent-commands.js';
import { type Contestant, LEASE_TIME, type LockClient } from './contestant.js';

export const simpleRedisMutex: Contestant = {
  name: 'simple-redis-mutex',
  package: 'simple-redis-mutex',
  waits: 'listens',
  does: 'lock, fencing token of one counter; on node-redis',
  async open(port): Promise<LockClient<ReleaseFunc>> {
    const redis = createClient({ url: `redis://127.0.0.1:${port}` });
    await redis.connect();
    countNodeRedis(redis);
    return {
      acquire: (key) => lock(redis as never, key, { timeout: LEASE_TIME }),
      release: (release) => release(),
      close: () => redis.close(),
    };
  },
};
