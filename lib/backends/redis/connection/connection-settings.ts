import type { ClusterOptions, RedisOptions } from 'ioredis';
import type { ClusterConnection } from './redis-connection.js';
import { ConnectionError } from './redis-errors.js';

/** ioredis makes strings of all others: `?lazyConnect=false` is true to it. And what it does not know it drops, such as `?ssl=true`. */
const URL_PARAMETERS = ['db', 'family', 'username', 'password', 'connectionName'];

/** What other clients and frameworks call it; ioredis would drop it, and connect to localhost, or without TLS. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
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
};

/** What a cluster's options have for all of its nodes. */
const OF_EACH_NODE = [
  'username',
  'password',
  'tls',
  'db',
  'family',
  'connectTimeout',
  'commandTimeout',
  'socketTimeout',
];

const IN_REDIS_OPTIONS = 'give it to all nodes, as { nodes, options: { redisOptions: { … } } }';

/**
 * What is refused here ioredis would drop without a word, or take for something else. A mistyped URL must not be echoed: it may hold a
 * password.
 *
 * @throws ConnectionError that names the setting, and what to do
 */
export function checkUrl(text: string): void {
  if (text.startsWith('/') && !text.startsWith('//')) return checkParameters(new URLSearchParams(text.split('?')[1]));
  if (!/^rediss?:\/\//.test(text) || !URL.canParse(text)) {
    throw new ConnectionError("The connection is no Redis URL: write 'redis://host:6379/0' or 'rediss://…' for TLS");
  }
  const { username, password, pathname, search, searchParams, hash } = new URL(text);
  if (hash !== '' || `${pathname}${search}`.includes('@') || !isEncoded(username) || !isEncoded(password)) {
    throw new ConnectionError(
      'The user name or the password in the URL of the connection holds a character that ends it: write # as %23, / as %2F, ? as %3F, @ as %40 and % as %25',
    );
  }
  checkParameters(searchParams);
  const database = pathname.slice(1);
  if (database !== '') checkDatabase(database, 'The path in the URL of the connection');
  if (database !== '' && searchParams.has('db') && Number(searchParams.get('db')) !== Number(database)) {
    throw new ConnectionError(
      'The URL of the connection names two databases, in its path and in ?db=: leave one of them out',
    );
  }
}

/** Options of a single server, or of Sentinels. */
export function checkOptions(options: RedisOptions): void {
  checkNames(options, 'The connection');
  checkDatabase(options.db, 'db of the connection');
  if (options.sentinels === undefined || options.sentinels === null || options.Connector !== undefined) return;
  const { sentinels, name, tls, enableTLSForSentinelMode } = options;
  if (!Array.isArray(sentinels) || sentinels.length === 0 || sentinels.some((one) => typeof one !== 'object')) {
    throw new ConnectionError('sentinels of the connection must be a list with one at least, such as [{ host, port }]');
  }
  if (typeof name !== 'string' || name === '') {
    throw new ConnectionError(
      'The connection has sentinels, but no name: give the name of the master that they watch, such as mymaster',
    );
  }
  if (Boolean(tls) !== Boolean(enableTLSForSentinelMode)) {
    throw new ConnectionError(
      'A master that is found by sentinels is connected to without TLS, unless tls and enableTLSForSentinelMode: true are both set: set both, or neither (sentinelTLS is for the sentinels themselves)',
    );
  }
}

export function checkCluster(connection: ClusterConnection): void {
  const { nodes, options = {} } = connection;
  if (!Array.isArray(nodes) || nodes.length === 0) {
    throw new ConnectionError('The connection has no cluster nodes: give at least one, as { nodes: [{ host, port }] }');
  }
  const stray = Object.keys(connection).find((key) => key !== 'nodes' && key !== 'options');
  if (stray !== undefined) {
    throw new ConnectionError(
      `The connection to a cluster has nodes and options; '${stray}' beside them would be ignored: ${IN_REDIS_OPTIONS}`,
    );
  }
  const misplaced = OF_EACH_NODE.find((key) => key in options);
  if (misplaced !== undefined) {
    throw new ConnectionError(`${misplaced} in the options of a cluster would be ignored: ${IN_REDIS_OPTIONS}`);
  }
  const { redisOptions = {} } = options;
  checkNames(redisOptions, 'redisOptions of the connection');
  for (const node of nodes as readonly unknown[]) checkNode(node, redisOptions);
}

/** What a client was made with, ours or another's. */
export function checkClient(options: RedisOptions & ClusterOptions, isCluster: boolean): void {
  if (options.keyPrefix || options.redisOptions?.keyPrefix) {
    throw new ConnectionError(
      'The ioredis client of the connection has a keyPrefix, which would be put before keys and not before channels: ' +
        'give one without it, and name the prefix in the keyPrefix of RedisLockModule',
    );
  }
  if (options.sentinels?.length && options.role === 'slave') {
    throw new ConnectionError(
      "The connection has role: 'slave': a replica that can be written to would grant locks of its own. Leave role out",
    );
  }
  if (!isCluster) checkDatabase(options.db, 'db of the ioredis client of the connection');
  else refuseDatabase((options.redisOptions as RedisOptions | undefined)?.db);
}

/** What it says of itself ioredis uses for this node alone, and not for those that the cluster tells it of. */
function checkNode(node: unknown, redisOptions: RedisOptions): void {
  if (typeof node === 'number') return;
  const url = typeof node === 'string' && /^rediss?:\/\//.test(node);
  if (url) checkUrl(node);
  const own = url ? ofUrl(new URL(node)) : typeof node === 'object' && node !== null ? (node as RedisOptions) : {};
  refuseDatabase(own.db);
  for (const setting of ['tls', 'username', 'password'] as const) {
    if (!own[setting] || redisOptions[setting]) continue;
    const found = setting === 'tls' && url ? 'rediss://' : setting;
    throw new ConnectionError(
      `${found} of a cluster node would not be used for the nodes that the cluster names: ${IN_REDIS_OPTIONS}${setting === 'tls' ? ', with tls: {}' : ''}`,
    );
  }
}

function ofUrl({ protocol, username, password, pathname, searchParams }: URL): RedisOptions {
  return {
    ...(protocol === 'rediss:' && { tls: {} }),
    username: username || (searchParams.get('username') ?? ''),
    password: password || (searchParams.get('password') ?? ''),
    db: Number(pathname.slice(1) || searchParams.get('db')),
  };
}

function checkParameters(parameters: URLSearchParams): void {
  const unknown = [...parameters.keys()].find((name) => !URL_PARAMETERS.includes(name));
  if (unknown !== undefined) {
    throw new ConnectionError(
      `The URL of the connection has the parameter '${unknown.slice(0, 40)}', which ioredis would drop or take for a string: give ioredis options instead of a URL (in a URL there may be ${URL_PARAMETERS.join(', ')}; rediss:// is TLS)`,
    );
  }
  checkDatabase(parameters.get('db'), 'The parameter db in the URL of the connection');
  const family = parameters.get('family');
  if (family !== null && !/^[046]$/.test(family))
    throw new ConnectionError('The parameter family in the URL of the connection must be 4 or 6, or 0 for both');
}

function checkNames(options: object, what: string): void {
  for (const [name, remedy] of Object.entries(OTHER_NAMES)) {
    if (name in options) throw new ConnectionError(`${what} has '${name}', which ioredis would ignore: ${remedy}`);
  }
}

/** ioredis takes '3x' for 3, and for all else that is not a number it stays in database 0. */
function checkDatabase(db: unknown, what: string): void {
  if (db === undefined || db === null || (typeof db === 'number' && Number.isSafeInteger(db) && db >= 0)) return;
  if (typeof db === 'string' && /^\d{1,9}$/.test(db)) return;
  throw new ConnectionError(`${what} must be the number of a database, such as 0`);
}

function refuseDatabase(db: unknown): void {
  if (db === undefined || db === null || Number(db) === 0) return;
  throw new ConnectionError('A cluster has database 0 alone: leave db out of the connection, and set a keyPrefix');
}

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
