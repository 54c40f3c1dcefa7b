import { startRedis } from '../support/redis-server.js';
import { describeLockBackend } from './describe-lock-backend.js';
import { redisFixture } from './redis-fixture.js';

describeLockBackend('RedisBackend, one server', async () => {
  const server = await startRedis();
  return redisFixture(server.url, () => server.stop());
});
