import type { Connection, NodeRedisConnection } from './connection.js';
import { ConnectionError } from './connection-error.js';
import { loadIoredis, loadNodeRedis } from './load-client.js';
import { parseUrl } from './url-settings.js';

/**
 * The options with which node-redis connects to a checked URL.
 *
 * @throws ConnectionError if node-redis is not installed
 */
export function nodeRedisUrl(url: string): NodeRedisConnection {
  if (loadNodeRedis() === undefined)
    throw new ConnectionError(
      'The connection is a URL, and no Redis client is installed: npm install ioredis, or npm install redis',
    );
  const options = parseUrl(url);
  // With RESP 3, node-redis leaves out a user without a password, and is the default user.
  const isPasswordless = options.username !== undefined && options.password === undefined;
  return { client: 'node-redis', ...options, ...(isPasswordless && { RESP: 2 }) };
}

/** How a diagnostic tool connects to a server in any state. */
export interface LookOptions {
  /** The URL names one node of a cluster. */
  readonly isCluster: boolean;
  /** In milliseconds. */
  readonly connectTimeout: number;
}

/**
 * The options for a checked URL with the installed client. The ready check is switched off, because the server may
 * be in trouble, and the user may not have the right to it.
 *
 * @throws ConnectionError if no client is installed
 */
export function connectionToLookAt(url: string, { isCluster, connectTimeout }: LookOptions): Connection {
  if (loadIoredis() === undefined) {
    const { username, password, socket, RESP, ...options } = nodeRedisUrl(url);
    if (!isCluster) return { ...options, username, password, RESP, socket: { ...socket, connectTimeout } };
    const { host, port, ...settings } = socket ?? {};
    const defaults = { username, password, RESP, database: options.database, socket: { ...settings, connectTimeout } };
    return { client: 'node-redis', rootNodes: [{ socket: { host, port } }], defaults };
  }
  const { name, database, username, password, socket } = parseUrl(url);
  const { host, port = 6_379, path, family, tls } = socket ?? {};
  const given = { ...(family && { family }), ...(tls && { tls: {} }) };
  const options = { username, password, connectTimeout, enableReadyCheck: false, ...given };
  const server = { host: host ?? 'localhost', port };
  if (isCluster)
    return { nodes: [server], options: { redisOptions: { ...options, db: database }, enableReadyCheck: false } };
  return { ...options, ...(path === undefined ? server : { path }), db: database, connectionName: name };
}
