import type { LockBackend } from '../../../lib/backends/lock-backend.js';
import { QuorumBackend } from '../../../lib/backends/quorum/quorum-backend.js';
import { RedisBackend } from '../../../lib/backends/redis/redis-backend.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';
import type { Capabilities } from '../../contract/support/fixture.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';

/** How a quorum differs from other backends. */
export const QUORUM: Capabilities = {
  types: ['reentrant', 'read', 'write', 'fenced'],
  tokensDiffer: false,
  adopts: false,
  flights: false,
  lines: false,
  joinsQuorums: false,
};

/** Independent masters. */
export function startNodes(count: number): Promise<RedisServer[]> {
  return Promise.all(Array.from({ length: count }, () => startRedis()));
}

/** The backends and connections that one process has for a quorum over these servers. */
export function connectQuorum(
  servers: readonly RedisServer[],
  options: { readonly commandTimeout?: number; readonly nodeTimeout?: number } = {},
): { readonly backend: LockBackend; readonly id: string } {
  const { commandTimeout = 2_000, nodeTimeout } = options;
  const id = nodeRuntime.uuid();
  const nodes = servers.map(
    ({ url }) =>
      new RedisBackend({
        connection: url,
        runtime: nodeRuntime,
        commandTimeout,
        shardedPubSub: 'auto',
        minReplicas: 0,
        onError: () => {},
      }),
  );
  return { backend: new QuorumBackend({ nodes, runtime: nodeRuntime, nodeTimeout }), id };
}
