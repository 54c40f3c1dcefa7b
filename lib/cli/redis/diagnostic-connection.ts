import { type Connection, clientForUrl, parseUrl, toNodeRedisConnection } from '../../backends/redis/diagnostics.js';

interface DiagnosticOptions {
  /** The URL names one node of a cluster. */
  readonly isCluster: boolean;
  /** In milliseconds. */
  readonly connectTimeout: number;
}

/**
 * The options with which a diagnostic tool connects to a checked URL. The client does not ask the server whether it is
 * ready, because the server may be in trouble, and the user may lack the right to ask.
 *
 * @throws ConnectionError if no client is installed
 */
export function diagnosticConnection(url: string, { isCluster, connectTimeout }: DiagnosticOptions): Connection {
  if (clientForUrl() === 'node-redis') {
    const { username, password, socket, RESP, ...options } = toNodeRedisConnection(url);
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
