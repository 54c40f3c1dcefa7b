import { nearestName } from '../../../nearest-name.js';
import type { NodeRedisConnection } from '../connection.js';
import { ConnectionError } from '../connection-error.js';
import { checkOptionNames, type KnownOptions } from '../option-names.js';

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

const SHARED = ['modules', 'functions', 'scripts', 'RESP', 'unstableResp3', 'commandOptions', 'clientSideCache'];

/** The options of `createClient()` of node-redis 5 and 6. */
const CLIENT_OPTIONS: KnownOptions = {
  library: 'node-redis',
  values: [
    ...SHARED,
    'url',
    'socket',
    'username',
    'password',
    'credentialsProvider',
    'name',
    'database',
    'keyPrefix',
    'commandsQueueMaxLength',
    'disableOfflineQueue',
    'readonly',
    'legacyMode',
    'pingInterval',
    'disableClientInfo',
    'clientInfoTag',
    'emitInvalidate',
    'himportRegistry',
    'maintNotifications',
    'maintEndpointType',
    'maintRelaxedCommandTimeout',
    'maintRelaxedSocketTimeout',
  ],
  functions: [],
  others: OTHERS,
};

/** The options of `createSentinel()`. */
const SENTINEL_OPTIONS: KnownOptions = {
  library: 'node-redis',
  values: [
    ...SHARED,
    'name',
    'sentinelRootNodes',
    'keyPrefix',
    'maxCommandRediscovers',
    'nodeClientOptions',
    'sentinelClientOptions',
    'masterPoolSize',
    'replicaPoolSize',
    'scanInterval',
    'passthroughClientErrorEvents',
    'reserveClient',
  ],
  functions: ['nodeAddressMap'],
  others: { ...OTHERS, password: 'it belongs in nodeClientOptions', username: 'it belongs in nodeClientOptions' },
};

/** The options of `createCluster()`. */
const CLUSTER_OPTIONS: KnownOptions = {
  library: 'node-redis',
  values: [
    ...SHARED,
    'rootNodes',
    'defaults',
    'keyPrefix',
    'minimizeConnections',
    'useReplicas',
    'maxCommandRedirections',
    'himportRegistry',
  ],
  functions: ['nodeAddressMap', 'topologyRefreshOnReconnectionAttemptStrategy'],
  others: { ...OTHERS, password: 'it belongs in defaults', username: 'it belongs in defaults' },
};

/**
 * Where a connection leads. Node.js has dozens of other options for sockets, and a mistake there leads nowhere else.
 */
const SOCKET_OPTIONS = ['host', 'port', 'path', 'tls'];
/** Options of sockets that resemble those. */
const ALIKE = ['cert', 'hints'];

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
    checkOptionNames(options, 'The connection', SENTINEL_OPTIONS);
    checkClientOptions(nodeClientOptions, 'nodeClientOptions of the connection');
    checkClientOptions(sentinelClientOptions, 'sentinelClientOptions of the connection');
  } else if (rootNodes !== undefined) {
    checkOptionNames(options, 'The connection', CLUSTER_OPTIONS);
    checkClientOptions(defaults, 'defaults of the connection');
    if (Array.isArray(rootNodes))
      for (const node of rootNodes) {
        if (typeof node !== 'object' || node === null)
          throw new ConnectionError(
            'A root node of the connection must be an object: { url } or { socket: { host, port } }',
          );
        checkClientOptions(node, 'A root node of the connection');
      }
  } else checkClientOptions(options, 'The connection');
}

function checkClientOptions(options: object | undefined, what: string): void {
  if (typeof options !== 'object' || options === null) return;
  checkOptionNames(options, what, CLIENT_OPTIONS);
  const { socket } = options as NodeRedisConnection;
  for (const name of Object.keys(socket ?? {})) {
    const nearest = name === 'hostname' ? 'host' : nearestName(name, [...SOCKET_OPTIONS, ...ALIKE]);
    if (nearest === undefined || nearest === name || ALIKE.includes(nearest)) continue;
    throw new ConnectionError(`socket of the connection has '${name}': did you mean '${nearest}'?`);
  }
}
