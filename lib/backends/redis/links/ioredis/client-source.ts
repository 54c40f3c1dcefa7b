import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis';
import { tooOldFor } from '../../../installed-version.js';
import type { ClusterConnection, Connection } from '../connection.js';
import { ConnectionError } from '../connection-error.js';
import { refuseOldClient, requireIoredis } from '../load-client.js';
import { checkHost, checkUrl } from '../url-settings.js';
import { checkClient, checkCluster, checkRedisOptions } from './check-ioredis-options.js';
import { type Client, isCluster } from './client.js';
import type { ClientDefaults } from './client-options.js';
import { refuseOtherDatabase } from './selected-database.js';

/** A client, and whether it is ours or borrowed from the user. */
export interface ClientSource {
  readonly client: Client;
  readonly owned: boolean;
  /** For logs; without credentials. */
  readonly description: string;
  /** The client finds its master through Sentinels, and the user has not chosen a `failoverDetector`. */
  readonly needsFailoverWatch?: boolean;
}

/**
 * Finds or creates the client of a `connection` option. A client that is created here does not connect yet.
 *
 * @throws ConnectionError when the option is not valid, or its client cannot be used for locks
 */
export function toClientSource(connection: Connection, defaults: ClientDefaults): ClientSource {
  const source = sourceOf(connection, defaults);
  try {
    refuseUnusable(source.client);
  } catch (error) {
    if (source.owned) source.client.disconnect();
    throw error;
  }
  return source;
}

function sourceOf(connection: Connection, defaults: ClientDefaults): ClientSource {
  if (typeof connection === 'function') return borrowed(connection(), 'The connection function returned');
  if (typeof connection === 'string') {
    checkUrl(connection);
    return ownRedis(new (requireIoredis().Redis)(connection, { ...defaults, lazyConnect: true }));
  }
  if (isClient(connection) || !isPlainObject(connection)) return borrowed(connection, 'The connection is');
  if ('nodes' in connection) return ownCluster(connection as ClusterConnection, defaults);
  const options = connection as RedisOptions;
  checkRedisOptions(options);
  const source = ownRedis(new (requireIoredis().Redis)({ ...defaults, ...options, lazyConnect: true }));
  const { sentinels, failoverDetector, Connector } = options;
  const needsFailoverWatch = Boolean(sentinels?.length) && failoverDetector === undefined && Connector === undefined;
  return { ...source, needsFailoverWatch };
}

const REMEDY =
  "Give a URL ('redis://host:6379'), ioredis options, { nodes } of a cluster, an ioredis client, or a function that returns one";

function borrowed(client: unknown, subject: string): ClientSource {
  refuseOld(client);
  if (!isClient(client))
    throw new ConnectionError(`${subject} ${kindOf(client)}, which is not an ioredis client. ${REMEDY}`);
  return { client, owned: false, description: isCluster(client) ? describeCluster(client) : describeRedis(client) };
}

function ownRedis(client: Redis): ClientSource {
  return { client, owned: true, description: describeRedis(client) };
}

function ownCluster(connection: ClusterConnection, defaults: ClientDefaults): ClientSource {
  checkCluster(connection);
  const { nodes, options } = connection;
  const { socketTimeout, disconnectTimeout } = defaults;
  const redisOptions = { socketTimeout, disconnectTimeout, ...options?.redisOptions } as ClusterOptions['redisOptions'];
  const client = new (requireIoredis().Cluster)([...nodes], { ...options, redisOptions, lazyConnect: true });
  return { client, owned: true, description: describeCluster(client) };
}

/** The version of a client is not known if another copy of ioredis created it. */
function refuseOld(client: unknown): void {
  if (typeof client !== 'object' || client === null) return;
  const problem = tooOldFor<IoredisExports>('ioredis', (module) =>
    [module.default, module.Cluster].some((type) => client instanceof type),
  );
  if (problem !== undefined || isIoredis4(client)) refuseOldClient('ioredis', problem);
}

type IoredisExports = Pick<typeof import('ioredis'), 'default' | 'Cluster'>;

function isIoredis4(client: object): boolean {
  return '_addedScriptHashes' in client;
}

/** Checks what clients of ioredis 5 and 6 have in common, because the user may have another copy of ioredis. */
function isClient(value: unknown): value is Client {
  const client = value as Partial<Client> | null | undefined;
  return (
    typeof client === 'object' &&
    client !== null &&
    typeof client.isCluster === 'boolean' &&
    typeof client.status === 'string' &&
    [client.sendCommand, client.duplicate, client.disconnect, client.on].every((method) => typeof method === 'function')
  );
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function kindOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return value === null ? 'null' : typeof value;
  return `an object of ${value.constructor?.name ?? 'no class'}`;
}

function refuseUnusable(client: Client): void {
  if (isCluster(client))
    for (const node of startupNodesOf(client)) {
      if (typeof node === 'object') checkHost(node.host, 'The host of a cluster node of the connection');
    }
  checkClient(client.options, isCluster(client));
  const mode = 'mode' in client ? client.mode : 'normal';
  if (mode !== 'normal') {
    throw new ConnectionError(
      `The ioredis client of the connection is in ${mode} mode and cannot run commands: give locks a client of their own, such as client.duplicate()`,
    );
  }
  refuseOtherDatabase(client);
}

function describeRedis({ options }: Redis): string {
  const where = options.sentinels?.length
    ? `${options.name} through sentinels ${options.sentinels.map(({ host, port }) => `${host ?? 'localhost'}:${port ?? 26_379}`).join(',')}`
    : (options.path ?? `${options.host}:${options.port}`);
  return `redis ${where}/${options.db ?? 0}`;
}

function describeCluster(cluster: Cluster): string {
  return `redis cluster ${startupNodesOf(cluster).map(describeNode).join(',')}`;
}

/** The nodes that a cluster client was given. */
export function startupNodesOf(cluster: Cluster): ClusterConnection['nodes'] {
  return (cluster as unknown as { startupNodes?: ClusterConnection['nodes'] }).startupNodes ?? [];
}

function describeNode(node: ClusterConnection['nodes'][number]): string {
  if (typeof node === 'object') return `${node.host ?? '127.0.0.1'}:${node.port ?? 6379}`;
  if (typeof node === 'number') return `127.0.0.1:${node}`;
  return URL.canParse(node) ? new URL(node).host : 'node';
}
