import { startSentinel } from '../support/redis-sentinel.js';
import { describeLockBackend } from './describe-lock-backend.js';
import { redisFixture } from './redis-fixture.js';

describeLockBackend('RedisBackend, Sentinel', async () => {
  const sentinel = await startSentinel();
  return redisFixture(sentinel.options, () => sentinel.stop());
});
