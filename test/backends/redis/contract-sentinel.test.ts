import { describeLockBackend } from '../../contract/describe-lock-backend.js';
import { redisFixture } from '../../contract/support/redis-fixture.js';
import { startSentinel } from '../../support/servers/redis-sentinel.js';

describeLockBackend('RedisBackend, Sentinel', async () => {
  const sentinel = await startSentinel();
  return redisFixture(sentinel.options, () => sentinel.stop());
});
