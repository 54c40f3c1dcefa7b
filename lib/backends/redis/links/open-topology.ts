import type { Client, Connection, NodeRedisConnection } from './connection.js';
import type { ConnectionContext } from './connection-context.js';
import { clientDefaults } from './ioredis/client-options.js';
import { toClientSource } from './ioredis/client-source.js';
import { IoredisTopology } from './ioredis/ioredis-topology.js';
import { loadIoredis } from './load-client.js';
import { isNodeRedis, openNodeRedis, openOptions } from './node-redis/node-redis-source.js';
import type { Topology } from './topology.js';
import { nodeRedisUrl } from './url-connection.js';
import { checkUrl } from './url-settings.js';

/**
 * The servers of a `connection` option, with the client library that it is for. Nothing is connected yet.
 *
 * @throws ConnectionError when the option is not valid, or its client cannot be used for locks
 */
export function openTopology(connection: Connection, context: ConnectionContext): Topology {
  return context.runtime.detached(() => {
    const isFunction = typeof connection === 'function';
    const given = isFunction ? (connection as () => Client)() : connection;
    if (isNodeRedis(given)) return openNodeRedis(given, context);
    if (isForNodeRedis(given)) return openOptions(given, context);
    // A URL is opened with ioredis if that is installed, because ioredis was the only client at first.
    if (typeof given === 'string' && loadIoredis() === undefined) {
      checkUrl(given);
      return openOptions(nodeRedisUrl(given), context);
    }
    const source = toClientSource(isFunction ? () => given as unknown as Client : connection, clientDefaults(context));
    return new IoredisTopology(source, context);
  });
}

function isForNodeRedis(connection: unknown): connection is NodeRedisConnection {
  return (connection as Partial<NodeRedisConnection> | null | undefined)?.client === 'node-redis';
}
