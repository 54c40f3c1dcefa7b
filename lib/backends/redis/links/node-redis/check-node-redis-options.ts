import type { NodeRedisConnection, NodeRedisSocket } from '../connection.js';
import { ConnectionError } from '../connection-error.js';
import { checkMisleading, checkSaysWhere, type Dialect } from '../says-where.js';

const IN_SOCKET = 'node-redis takes it in socket: { host, port, path, tls }';

const OTHERS: Readonly<Record<string, string>> = {
  host: IN_SOCKET,
  port: IN_SOCKET,
  path: IN_SOCKET,
  tls: IN_SOCKET,
  db: 'node-redis calls it database',
  user: 'node-redis calls it username',
  connectionName: 'node-redis calls it name',
  nodes: 'node-redis calls them rootNodes',
  sentinels: 'node-redis calls them sentinelRootNodes',
  redisOptions: 'node-redis calls them defaults',
};

const CLIENT: Dialect = { library: 'node-redis', where: ['url', 'socket'], others: OTHERS };
const SENTINEL: Dialect = {
  library: 'node-redis',
  where: ['sentinelRootNodes'],
  others: { ...OTHERS, password: 'it belongs in nodeClientOptions', username: 'it belongs in nodeClientOptions' },
};
const CLUSTER: Dialect = {
  library: 'node-redis',
  where: ['rootNodes'],
  others: { ...OTHERS, password: 'it belongs in defaults', username: 'it belongs in defaults' },
};
const SOCKET: Dialect = {
  library: 'node-redis',
  where: ['host', 'port', 'path', 'tls'],
  // Options that Node.js has for sockets.
  alike: ['cert', 'hints'],
  others: { hostname: 'node-redis calls it host' },
};

/** @throws ConnectionError that names the option, and says what to do */
export function checkNodeRedisOptions(options: Omit<NodeRedisConnection, 'client'>): void {
  const { sentinelRootNodes, rootNodes, nodeClientOptions, sentinelClientOptions, defaults } = options;
  for (const [name, shared] of Object.entries({ nodeClientOptions, sentinelClientOptions, defaults })) {
    if ((shared as NodeRedisConnection | undefined)?.url === undefined) continue;
    throw new ConnectionError(
      `url in ${name} of the connection would be ignored, with its password: give the addresses in sentinelRootNodes or rootNodes, and username, password and socket: { tls } in ${name}`,
    );
  }
  if (sentinelRootNodes !== undefined) {
    checkMisleading(options, 'The connection', SENTINEL);
    checkShared(nodeClientOptions, 'nodeClientOptions of the connection');
    checkShared(sentinelClientOptions, 'sentinelClientOptions of the connection');
  } else if (rootNodes !== undefined) {
    checkMisleading(options, 'The connection', CLUSTER);
    checkShared(defaults, 'defaults of the connection');
    if (Array.isArray(rootNodes))
      for (const node of rootNodes) {
        if (typeof node !== 'object' || node === null)
          throw new ConnectionError(
            'A root node of the connection must be an object: { url } or { socket: { host, port } }',
          );
        checkClient(node, 'A root node of the connection');
      }
  } else checkClient(options, 'The connection');
}

function checkClient(options: object, what: string): void {
  checkSaysWhere(options, what, CLIENT);
  checkSocket(options);
}

/** Options for clients that are told elsewhere where to connect. */
function checkShared(options: object | undefined, what: string): void {
  if (typeof options !== 'object' || options === null) return;
  checkMisleading(options, what, CLIENT);
  checkSocket(options);
}

function checkSocket({ socket }: { socket?: NodeRedisSocket | undefined }): void {
  if (socket !== undefined) checkMisleading(socket, 'socket of the connection', SOCKET);
}
