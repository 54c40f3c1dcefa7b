import { RedisBackend } from '../../lib/backends/redis/redis-backend.js';
import { nodeRuntime } from '../../lib/engine/node-runtime.js';
import { startRedis } from '../support/redis-server.js';
import { describeLockBackend } from './describe-lock-backend.js';

describeLockBackend('RedisBackend, one server', async () => {
  const server = await startRedis();
  return {
    connect: async () => {
      const id = nodeRuntime.uuid();
      const backend = new RedisBackend({
        connection: server.url,
        runtime: nodeRuntime,
        clientId: id,
        commandTimeout: 5_000,
        shardedPubSub: 'auto',
        minReplicas: 0,
        replicaTimeout: 1_000,
        onError: (error) => console.error(error),
      });
      return { backend, id };
    },
    stop: () => server.stop(),
  };
});
