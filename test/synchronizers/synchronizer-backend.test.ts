import { MemoryBackend } from '../../lib/backends/memory/memory-backend.js';
import { MemoryStore } from '../../lib/backends/memory/memory-store.js';
import { nodeRuntime } from '../../lib/engine/node-runtime.js';
import { redisFixture } from '../contract/support/redis-fixture.js';
import { WatchedServer } from '../contract/support/watched-server.js';
import { startCluster } from '../support/servers/redis-cluster.js';
import { describeSynchronizerBackend } from './describe-synchronizer-backend.js';

describeSynchronizerBackend('memory', async () => {
  const store = new MemoryStore();
  return {
    connect: async () => ({ backend: new MemoryBackend({ runtime: nodeRuntime, store }), id: nodeRuntime.uuid() }),
    stop: async () => {},
  };
});

const watched = new WatchedServer();
describeSynchronizerBackend('Redis, one server', watched.open);
watched.describeKeys({ folders: ['count', 'latch', 'leased-permits', 'semaphore'], scriptsThatReadLeases: [] });

describeSynchronizerBackend('Redis, cluster', async () => {
  const cluster = await startCluster();
  return redisFixture({ nodes: cluster.nodes }, () => cluster.stop());
});
