import { describeSynchronizerBackend } from '../../contract/describe-synchronizer-backend.js';
import { redisFixture } from '../../contract/support/redis-fixture.js';
import { WatchedServer } from '../../contract/support/watched-server.js';
import { startCluster } from '../../support/servers/redis-cluster.js';

const watched = new WatchedServer();
describeSynchronizerBackend('Redis, one server', watched.open);
watched.describeKeys({
  folders: ['count', 'latch', 'leased-permits', 'semaphore'],
  withUnnamedKeys: ['release-reentrant'],
});

describeSynchronizerBackend('Redis, cluster', async () => {
  const cluster = await startCluster();
  return redisFixture({ nodes: cluster.nodes }, () => cluster.stop());
});
