import type { NodeRedisConnection } from '../connection.js';
import type { ConnectionContext } from '../connection-context.js';
import { ConnectionError } from '../connection-error.js';
import { checkDatabaseNumber } from '../database-number.js';
import { refuseOldClient, requireNodeRedis } from '../load-client.js';
import type { Topology } from '../topology.js';
import { checkHost, readUrl } from '../url-settings.js';
import { checkNodeRedisOptions } from './check-node-redis-options.js';
import { type ClusterSource, ClusterTopology } from './cluster-topology.js';
import {
  connectionOptionsOf,
  type Endpoint,
  type NodeAddressMap,
  type NodeRedisClient,
  type NodeRedisOptions,
  ownClient,
} from './node-redis-client.js';
import { type SentinelOptions, sentinelSource } from './sentinel-source.js';
import { type SingleSource, SingleTopology } from './single-topology.js';

/** The parts of a node-redis cluster client that are used here. */
interface NodeRedisCluster {
  readonly _options: {
    readonly rootNodes: readonly NodeRedisOptions[];
    readonly defaults?: NodeRedisOptions;
    readonly nodeAddressMap?: NodeAddressMap;
    readonly keyPrefix?: string;
  };
}

const DEFAULT_PORT = 6_379;

/** Whether a value has the shape of a client, cluster or Sentinel client of node-redis. */
export function isNodeRedis(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const { sendCommand, duplicate, connect, destroy, status } = value as Record<string, unknown>;
  const looks = [sendCommand, connect, destroy ?? duplicate].every((method) => typeof method === 'function');
  return (looks && status === undefined && !('isCluster' in value)) || isNodeRedis3(value);
}

function isNodeRedis3(value: object): boolean {
  return typeof (value as { internal_send_command?: unknown }).internal_send_command === 'function';
}

/**
 * The servers of a node-redis client, or of options for one. Only the settings of the client are read. It is never
 * connected, closed or listened to.
 *
 * @throws ConnectionError when locks cannot use it
 */
export function openNodeRedis(source: object, context: ConnectionContext): Topology {
  if (isCluster(source)) return new ClusterTopology(clusterSource(source), context);
  if ('getSentinelNode' in source) {
    const options = sentinelOptionsOf(source);
    if (options?.sentinelRootNodes !== undefined) return openSentinel(options, context);
    throw new ConnectionError(
      "The connection is a Sentinel client of node-redis 5, which keeps its settings to itself: give { client: 'node-redis', name, sentinelRootNodes, … }, the options of createSentinel(), or update to redis 6",
    );
  }
  refuseOtherKinds(source);
  return new SingleTopology(singleSource(source as NodeRedisClient), context);
}

/** @throws ConnectionError when the options cannot be used, or node-redis is not installed */
export function openOptions({ client: _, ...options }: NodeRedisConnection, context: ConnectionContext): Topology {
  const nodeRedis = requireNodeRedis();
  checkNodeRedisOptions(options);
  if ('sentinelRootNodes' in options) return openSentinel(options as SentinelOptions, context);
  if ('rootNodes' in options) return openNodeRedis({ _options: options }, context);
  const { url } = options;
  const isPath = typeof url === 'string' && url.startsWith('unix:');
  if (url !== undefined && !isPath) readNodeRedisUrl(url, 'The url of the connection');
  let client: NodeRedisClient;
  try {
    client = nodeRedis.createClient(options);
  } catch (error) {
    const { message } = error as Error; // it may contain the URL
    const reason = url === undefined ? message : message.replaceAll(url, 'the url');
    throw new ConnectionError(`The connection is not one for node-redis: ${reason}`);
  }
  return openNodeRedis(client, context);
}

function openSentinel(options: SentinelOptions, context: ConnectionContext): Topology {
  refusePrefix(options.keyPrefix ?? options.nodeClientOptions?.keyPrefix);
  return new SingleTopology(sentinelSource(options, requireNodeRedis(), context), context);
}

/**
 * The settings of a client from `createSentinel()`. They are private, but in node-redis 6 they are passed to a
 * duplicate. The duplicate that is created here only reads them.
 */
function sentinelOptionsOf(source: object): SentinelOptions | undefined {
  const { duplicate } = source as { duplicate?: (overrides: object) => unknown };
  if (duplicate === undefined) return undefined;
  let options: SentinelOptions | undefined;
  const copy = Object.create(source, {
    constructor: {
      value: function Reader(given: SentinelOptions) {
        options = given;
      },
    },
  });
  duplicate.call(Object.create(copy), {});
  return options;
}

function isCluster(source: object): source is NodeRedisCluster {
  return Array.isArray((source as Partial<NodeRedisCluster>)._options?.rootNodes);
}

function refuseOtherKinds(source: object): void {
  // Clients of node-redis 4; its clusters are those without `_options`.
  if ('v4' in source || 'nodeByAddress' in source || isNodeRedis3(source)) refuseOldClient('redis');
  const { options, isPubSubActive, isWatching } = source as Partial<NodeRedisClient & { isWatching: boolean }>;
  if (options === undefined) {
    throw new ConnectionError(
      'The connection is a pool, or a client within a wrapper, of node-redis, whose settings cannot be read: give what createClient(), createCluster() or createSentinel() returns',
    );
  }
  if (options.legacyMode)
    throw new ConnectionError('The node-redis client of the connection is in legacy mode: give one without legacyMode');
  if (isPubSubActive)
    throw new ConnectionError(
      'The node-redis client of the connection is in subscriber mode: give locks a client of their own, such as client.duplicate()',
    );
  if (isWatching)
    throw new ConnectionError(
      'The node-redis client of the connection is in a transaction (WATCH): give locks another one',
    );
  refusePrefix(options.keyPrefix);
}

function refusePrefix(keyPrefix: string | undefined): void {
  if (!keyPrefix) return;
  throw new ConnectionError(
    'The node-redis client of the connection has a keyPrefix, which is added to keys but not to channels: give a client without it, and set the keyPrefix of RedisLockModule instead',
  );
}

function singleSource(client: NodeRedisClient): SingleSource {
  const options = client.options as NodeRedisOptions;
  const { socket = {}, database = 0 } = options;
  checkDatabaseNumber(database, 'database of the node-redis client of the connection');
  checkHost(socket.host, 'host of the node-redis client of the connection');
  checkHost(socket.path, 'path of the node-redis client of the connection');
  const address = socket.path ?? `${socket.host ?? 'localhost'}:${socket.port ?? DEFAULT_PORT}`;
  return {
    description: `redis ${address}/${database}`,
    get settings() {
      return connectionOptionsOf(client.options as NodeRedisOptions);
    },
    address,
    database,
    usesTls: Boolean(socket.tls),
    createClient: (endpoint) => ownClient(options, endpoint, (own) => client.duplicate(own)),
    locate: () => Promise.resolve({}),
  };
}

function clusterSource({ _options }: NodeRedisCluster): ClusterSource {
  const { rootNodes, defaults = {}, nodeAddressMap, keyPrefix } = _options;
  refusePrefix(keyPrefix ?? defaults.keyPrefix);
  const { database = 0 } = defaults;
  checkDatabaseNumber(database, 'database in the defaults of the connection');
  if (rootNodes.length === 0)
    throw new ConnectionError('The node-redis cluster of the connection has no rootNodes: give at least one');
  const { createClient } = requireNodeRedis();
  const clientOf = (options: NodeRedisOptions) => (endpoint: Endpoint) =>
    ownClient(options, endpoint, (own) => createClient({ ...options, ...own }));
  const roots = rootNodes.map((node) => {
    const options = { ...defaults, ...parsed(node), database };
    const socket = { ...defaults.socket, ...parsed(node).socket };
    checkHost(socket.host, 'The host of a root node of the connection');
    const endpoint = { host: socket.host ?? '127.0.0.1', port: socket.port ?? DEFAULT_PORT };
    return { endpoint, usesTls: Boolean(socket.tls), createClient: clientOf({ ...options, socket }) };
  });
  const translate = (address: string) =>
    typeof nodeAddressMap === 'function' ? nodeAddressMap(address) : nodeAddressMap?.[address];
  const addresses = roots.map(({ endpoint: { host, port } }) => `${host}:${port}`);
  return {
    description: `redis cluster ${addresses.join(',')}`,
    settings: {
      rootNodes: rootNodes.map(connectionOptionsOf),
      defaults: connectionOptionsOf(defaults),
      nodeAddressMap,
    },
    database,
    usesTls: roots.some(({ usesTls }) => usesTls),
    roots,
    createClient: clientOf(defaults),
    translate,
  };
}

/** Like {@link readUrl}. node-redis reads no parameters, such as `?db=3`, and would connect to another database. */
function readNodeRedisUrl(text: unknown, what: string): URL {
  const url = readUrl(text, what);
  const [parameter] = url.searchParams.keys();
  if (parameter === undefined) return url;
  throw new ConnectionError(
    `${what} has the parameter '${parameter.slice(0, 40)}', which node-redis would ignore: give it as an option beside the url (for ?db=, 'database'), or give the URL itself as the connection`,
  );
}

/** The settings in a URL, which node-redis reads only when it creates a client. */
function parsed({ url, ...options }: NodeRedisOptions): NodeRedisOptions {
  if (url === undefined) return options;
  const { hostname, port, username, password, protocol } = readNodeRedisUrl(
    url,
    'The url of a root node of the connection',
  );
  const credentials = {
    ...(username !== '' && { username: decodeURIComponent(username) }),
    ...(password !== '' && { password: decodeURIComponent(password) }),
  };
  const socket = {
    ...options.socket,
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port) || DEFAULT_PORT,
    ...(protocol === 'rediss:' && { tls: true }),
  };
  return { ...options, ...credentials, socket };
}
