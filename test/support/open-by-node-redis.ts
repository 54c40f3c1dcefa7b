import type { RedisOptions } from 'ioredis';
import { clientForUrl, openTopology as open } from '../../lib/backends/redis/links/choose-client.js';
import type { ClusterConnection, Connection } from '../../lib/backends/redis/links/connection.js';
import type { ConnectionContext } from '../../lib/backends/redis/links/connection-context.js';
import type { Topology } from '../../lib/backends/redis/links/topology.js';

export { clientForUrl };

/**
 * With `TEST_CLIENT=node-redis`, this replaces `links/choose-client`, also in the processes that tests start. Options
 * that were written for ioredis are then used to connect node-redis. Clients of ioredis are used unchanged.
 */
export function openTopology(connection: Connection, context: ConnectionContext): Topology {
  return open(byNodeRedis(connection), context);
}

function byNodeRedis(connection: Connection): Connection {
  if (typeof connection !== 'object' || connection === null || isClient(connection) || 'client' in connection)
    return connection;
  if ('nodes' in connection) return cluster(connection);
  const { host, port, username, password, db, sentinels, name, sentinelPassword } = connection as RedisOptions;
  if (sentinels !== undefined && sentinels !== null)
    return {
      client: 'node-redis',
      name,
      sentinelRootNodes: sentinels as { host: string; port: number }[],
      sentinelClientOptions: { password: sentinelPassword },
      nodeClientOptions: { username, password, database: db ?? 0 },
    };
  return { client: 'node-redis', username, password, database: db ?? 0, socket: { host: host ?? '127.0.0.1', port } };
}

function cluster({ nodes, options }: ClusterConnection): Connection {
  const { username, password } = (options?.redisOptions ?? {}) as RedisOptions;
  const rootNodes = (nodes as readonly { host: string; port: number }[]).map((socket) => ({ socket }));
  const nodeAddressMap = options?.natMap as Record<string, { host: string; port: number }> | undefined;
  return { client: 'node-redis', rootNodes, defaults: { username, password }, nodeAddressMap };
}

function isClient(connection: object): boolean {
  return 'sendCommand' in connection;
}
