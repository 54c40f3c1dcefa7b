import type { Connection } from '../../../lib/backends/redis/links/connection.js';
import { RedisBackend } from '../../../lib/backends/redis/redis-backend.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';
import type { Client, Fixture } from './fixture.js';

/** Clients of a Redis that a test has started. */
export function redisFixture(connection: Connection, stop: () => Promise<void>): Fixture {
  return { connect: async () => connect(connection), stop };
}

function connect(connection: Connection): Client {
  const id = nodeRuntime.uuid();
  const backend = new RedisBackend({
    connection,
    runtime: nodeRuntime,
    // The contract is not about slow servers. Results of a megabyte take a busy one seconds.
    commandTimeout: 20_000,
    shardedPubSub: 'auto',
    minReplicas: 0,
    onError: (error) => console.error(error),
  });
  return { backend, id };
}
