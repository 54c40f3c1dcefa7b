import { InProcessServer } from '../../../../lib/backends/redis/in-process/in-process-server.js';
import { InProcessTopology } from '../../../../lib/backends/redis/in-process/in-process-topology.js';
import { TRANSLATED_SCRIPTS } from '../../../../lib/backends/redis/in-process/translated-scripts.generated.js';
import { TopologyFactory } from '../../../../lib/backends/redis/links/topology.js';
import { RedisBackend } from '../../../../lib/backends/redis/redis-backend.js';
import { describeLockBackend } from '../../../contract/describe-lock-backend.js';
import { VirtualRuntime } from '../../../support/runtime/virtual-runtime.js';

describeLockBackend('RedisBackend on the server in this process', async () => {
  const clock = new VirtualRuntime();
  const server = new InProcessServer({ scripts: TRANSLATED_SCRIPTS, micros: () => clock.wall() * 1_000 });
  return {
    connect: async () => {
      const id = clock.uuid();
      const backend = new RedisBackend({
        connection: new TopologyFactory(() => new InProcessTopology(server, clock)),
        runtime: clock,
        clientId: id,
        commandTimeout: 2_000,
        shardedPubSub: 'auto',
        minReplicas: 0,
        replicaTimeout: 1_000,
        onError: () => {},
      });
      return { backend, id, clock };
    },
    stop: async () => {},
  };
});
