import { startCluster } from '../support/servers/redis-cluster.js';
import { describeLockBackend } from './describe-lock-backend.js';
import { redisFixture } from './support/redis-fixture.js';

describeLockBackend(
  'RedisBackend, cluster',
  async () => {
    const cluster = await startCluster();
    return redisFixture({ nodes: cluster.nodes }, () => cluster.stop());
  },
  { countsListeners: false },
);
