import { MemoryBackend } from '../../lib/backends/memory/memory-backend.js';
import { MemoryStore } from '../../lib/backends/memory/memory-store.js';
import { nodeRuntime } from '../../lib/engine/node-runtime.js';
import { redisFixture } from '../contract/redis-fixture.js';
import { startCluster } from '../support/redis-cluster.js';
import { startRedis } from '../support/redis-server.js';
import { describeSynchronizerBackend } from './describe-synchronizer-backend.js';

describeSynchronizerBackend('memory', async () => {
  const store = new MemoryStore();
  return {
    connect: async () => ({ backend: new MemoryBackend({ runtime: nodeRuntime, store }), id: nodeRuntime.uuid() }),
    stop: async () => {},
  };
});

describeSynchronizerBackend('Redis, one server', async () => {
  const server = await startRedis();
  return redisFixture(server.url, () => server.stop());
});

describeSynchronizerBackend('Redis, cluster', async () => {
  const cluster = await startCluster();
  return redisFixture({ nodes: cluster.nodes }, () => cluster.stop());
});
