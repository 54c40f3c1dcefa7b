import { startSentinel } from '../support/servers/redis-sentinel.js';
import { describeLockBackend } from './describe-lock-backend.js';
import { redisFixture } from './support/redis-fixture.js';

describeLockBackend('RedisBackend, Sentinel', async () => {
  const sentinel = await startSentinel();
  return redisFixture(sentinel.options, () => sentinel.stop());
});
