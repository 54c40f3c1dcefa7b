import { describeLockBackend } from '../../contract/describe-lock-backend.js';
import { redisFixture } from '../../contract/support/redis-fixture.js';
import { startCluster } from '../../support/servers/redis-cluster.js';

describeLockBackend(
  'RedisBackend, cluster',
  async () => {
    const cluster = await startCluster();
    return redisFixture({ nodes: cluster.nodes }, () => cluster.stop());
  },
  { countsListeners: false },
);
