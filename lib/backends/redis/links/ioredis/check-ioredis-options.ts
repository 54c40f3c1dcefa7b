import type { ClusterOptions, RedisOptions } from 'ioredis';
import type { ClusterConnection } from '../connection.js';
import { ConnectionError } from '../connection-error.js';
import { checkDatabaseNumber } from '../database-number.js';
import { checkMisleading, checkSaysWhere, type Dialect } from '../says-where.js';
import { checkHost, checkUrl } from '../url-settings.js';

const REDIS: Dialect = {
  library: 'ioredis',
  where: ['host', 'port', 'path', 'sentinels'],
  alike: ['sentinelTLS'],
  others: {
    url: 'give the URL itself as the connection',
    uri: 'give the URL itself as the connection',
    hostname: 'ioredis calls it host',
    socket: 'ioredis takes host, port and tls beside the other options',
    database: 'ioredis calls it db',
    user: 'ioredis calls it username',
    pass: 'ioredis calls it password',
    ssl: 'ioredis calls it tls',
    sentinel: 'ioredis calls them sentinels',
    masterName: 'ioredis calls it name',
    client: "the only client that can be named is client: 'node-redis'",
    redisOptions: 'it belongs to a cluster, as { nodes, options: { redisOptions } }',
  },
};

/** Settings that belong in `redisOptions`, which a cluster client uses for all of its nodes. */
const NODE_SETTINGS = [
  'username',
  'password',
  'tls',
  'db',
  'family',
  'connectTimeout',
  'commandTimeout',
  'socketTimeout',
];

const IN_REDIS_OPTIONS = 'set it for all nodes, as { nodes, options: { redisOptions: { … } } }';

/**
 * Checks the options of a single server, or of Sentinels.
 *
 * @throws ConnectionError that names the setting, and says what to do
 */
export function checkRedisOptions(options: RedisOptions): void {
  // A connector knows by itself where to connect.
  if (options.Connector === undefined) checkSaysWhere(options, 'The connection', REDIS);
  checkDatabaseNumber(options.db, 'db of the connection');
  if (options.sentinels === undefined || options.sentinels === null || options.Connector !== undefined) return;
  const { sentinels, name, tls, enableTLSForSentinelMode } = options;
  if (!Array.isArray(sentinels) || sentinels.length === 0 || sentinels.some((one) => typeof one !== 'object')) {
    throw new ConnectionError(
      'sentinels of the connection must be a list of at least one sentinel, such as [{ host, port }]',
    );
  }
  if (typeof name !== 'string' || name === '') {
    throw new ConnectionError(
      'The connection has sentinels but no name: set name to the master that they watch, such as mymaster',
    );
  }
  if (Boolean(tls) !== Boolean(enableTLSForSentinelMode)) {
    throw new ConnectionError(
      'ioredis uses TLS for a master behind sentinels only when tls and enableTLSForSentinelMode: true are both set: set both, or neither (sentinelTLS is for the sentinels themselves)',
    );
  }
}

/** @throws ConnectionError that names the setting, and says what to do */
export function checkCluster(connection: ClusterConnection): void {
  const { nodes, options = {} } = connection;
  if (!Array.isArray(nodes) || nodes.length === 0) {
    throw new ConnectionError('The connection has no cluster nodes: give at least one, as { nodes: [{ host, port }] }');
  }
  const stray = Object.keys(connection).find((key) => key !== 'nodes' && key !== 'options');
  if (stray !== undefined) {
    throw new ConnectionError(
      `The connection to a cluster takes nodes and options; '${stray}' beside them would be ignored: ${IN_REDIS_OPTIONS}`,
    );
  }
  const misplaced = NODE_SETTINGS.find((key) => key in options);
  if (misplaced !== undefined) {
    throw new ConnectionError(`${misplaced} in the options of a cluster would be ignored: ${IN_REDIS_OPTIONS}`);
  }
  const { redisOptions = {} } = options;
  checkMisleading(redisOptions, 'redisOptions of the connection', REDIS);
  for (const node of nodes as readonly unknown[]) checkNode(node, redisOptions);
}

/**
 * Checks the options that a client was created with, by us or by the user.
 *
 * @throws ConnectionError that names the setting, and says what to do
 */
export function checkClient(options: RedisOptions & ClusterOptions, isCluster: boolean): void {
  checkHost(options.host, 'host of the connection');
  for (const { host } of options.sentinels ?? []) checkHost(host, 'The host of a Sentinel of the connection');
  checkHost(options.path, 'path of the connection');
  if (options.keyPrefix || options.redisOptions?.keyPrefix) {
    throw new ConnectionError(
      'The ioredis client of the connection has a keyPrefix, which ioredis adds to keys but not to channels: ' +
        'give a client without it, and set the keyPrefix of RedisLockModule instead',
    );
  }
  if (options.sentinels?.length && options.role === 'slave') {
    throw new ConnectionError(
      "The connection has role: 'slave': a writable replica would grant locks that its master does not know. Remove role",
    );
  }
  const { db } = isCluster ? ((options.redisOptions ?? {}) as RedisOptions) : options;
  checkDatabaseNumber(db, `db${isCluster ? ' in the redisOptions' : ''} of the ioredis client of the connection`);
}

/** Refuses settings of one node that ioredis would not use for the nodes that it discovers. */
function checkNode(node: unknown, redisOptions: RedisOptions): void {
  if (typeof node === 'number') return;
  if (typeof node === 'object' && node !== null) checkSaysWhere(node, 'A cluster node of the connection', REDIS);
  // ioredis also takes 'host:port'.
  const url = typeof node === 'string' && /:\/\/|@/.test(node);
  if (url) checkUrl(node);
  const own = url
    ? optionsOfUrl(new URL(node))
    : typeof node === 'object' && node !== null
      ? (node as RedisOptions)
      : {};
  if (Number(own.db ?? 0) !== 0)
    throw new ConnectionError(
      `db of a cluster node would be ignored: remove it, or, where the cluster has more databases than 0, as Valkey 9 can, ${IN_REDIS_OPTIONS}`,
    );
  for (const setting of ['tls', 'username', 'password'] as const) {
    if (!own[setting] || redisOptions[setting]) continue;
    const found = setting === 'tls' && url ? 'rediss://' : setting;
    throw new ConnectionError(
      `${found} of a cluster node would not be used for the nodes that ioredis discovers: ${IN_REDIS_OPTIONS}${setting === 'tls' ? ', with tls: {}' : ''}`,
    );
  }
}

function optionsOfUrl({ protocol, username, password, pathname, searchParams }: URL): RedisOptions {
  return {
    ...(protocol === 'rediss:' && { tls: {} }),
    username: username || (searchParams.get('username') ?? ''),
    password: password || (searchParams.get('password') ?? ''),
    db: Number(pathname.slice(1) || searchParams.get('db')),
  };
}
