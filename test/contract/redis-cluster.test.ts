import { startCluster } from '../support/redis-cluster.js';
import { describeLockBackend } from './describe-lock-backend.js';
import { redisFixture } from './redis-fixture.js';

describeLockBackend(
  'RedisBackend, cluster',
  async () => {
    const cluster = await startCluster();
    return redisFixture({ nodes: cluster.nodes }, () => cluster.stop());
  },
  { countsListeners: false },
);
