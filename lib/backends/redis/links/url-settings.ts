import type { NodeRedisConnection } from './connection.js';
import { ConnectionError } from './connection-error.js';
import { checkDatabaseNumber } from './database-number.js';
import type { NodeRedisOptions } from './node-redis/node-redis-client.js';

/**
 * ioredis reads all other parameters as strings, so that `?lazyConnect=false` counts as true, and ignores those that it
 * does not know, such as `?ssl=true`.
 */
const URL_PARAMETERS = ['db', 'family', 'username', 'password', 'connectionName'];

const RESERVED =
  'write # as %23, / as %2F, ? as %3F, @ as %40 and % as %25 in a user name or password, as encodeURIComponent() does';

/**
 * Reads a Redis URL. Every URL is read here, because the error of `new URL()` contains the text, and with it the
 * password. Reserved characters in a password change what the other parts mean.
 *
 * @param what how the error names the URL
 * @throws ConnectionError that never quotes it
 */
export function readUrl(text: unknown, what: string): URL {
  if (typeof text !== 'string' || !/^rediss?:\/\//.test(text))
    throw new ConnectionError(`${what} is not a Redis URL: write 'redis://host:6379/0' or 'rediss://…' for TLS`);
  if (!URL.canParse(text))
    throw new ConnectionError(`${what} is not a URL that can be read. Check its port, and ${RESERVED}`);
  const url = new URL(text);
  const { username, password, pathname, search, hash } = url;
  if (hash !== '' || `${pathname}${search}`.includes('@') || !isEncoded(username) || !isEncoded(password))
    throw new ConnectionError(`${what} contains a reserved character: ${RESERVED}`);
  return url;
}

/**
 * Refuses a URL where only a host or the path of a socket belongs. It would appear in logs, with its password.
 *
 * @throws ConnectionError
 */
export function checkHost(host: unknown, what: string): void {
  if (typeof host !== 'string' || /^[./]/.test(host) || !/:\/\/|@/.test(host)) return;
  throw new ConnectionError(
    `${what} is a URL, or a part of one: give the URL itself as the connection, or only the name of the host`,
  );
}

/**
 * Refuses what ioredis would silently ignore or misread. The message never quotes the URL, which may contain a
 * password.
 *
 * @throws ConnectionError that names the setting, and says what to do
 */
export function checkUrl(text: string): void {
  if (text.startsWith('/') && !text.startsWith('//')) return checkParameters(new URLSearchParams(text.split('?')[1]));
  const { pathname, searchParams } = readUrl(text, 'The URL of the connection');
  checkParameters(searchParams);
  const database = pathname.slice(1);
  if (database !== '') checkDatabaseNumber(database, 'The path in the URL of the connection');
  if (database !== '' && searchParams.has('db') && Number(searchParams.get('db')) !== Number(database)) {
    throw new ConnectionError(
      'The URL of the connection names two databases, one in its path and one in ?db=: remove one of them',
    );
  }
}

/**
 * The settings of a checked URL as options of node-redis. The URL is read as ioredis reads it, so that it means the
 * same database with both clients.
 */
export function parseUrl(text: string): NodeRedisOptions {
  const path = text.startsWith('/') && !text.startsWith('//') ? text.split('?')[0] : undefined;
  const { hostname, port, username, password, pathname, protocol, searchParams } = new URL(
    path === undefined ? text : `redis://localhost/${text.slice(path.length)}`,
  );
  const inUrl = username !== '' || password !== '';
  const credentials = {
    username: inUrl ? decodeURIComponent(username) : searchParams.get('username'),
    password: inUrl ? decodeURIComponent(password) : searchParams.get('password'),
  };
  const family = Number(searchParams.get('family') ?? 0);
  return {
    username: credentials.username || undefined,
    password: credentials.password || undefined,
    name: searchParams.get('connectionName') ?? undefined,
    database: Number(pathname.slice(1) || searchParams.get('db')),
    socket: {
      ...(path === undefined
        ? { host: hostname.replace(/^\[|\]$/g, '') || undefined, port: Number(port) || undefined }
        : { path }),
      ...(family !== 0 && { family }),
      ...(protocol === 'rediss:' && { tls: true }),
    },
  };
}

/** The options with which node-redis connects to a checked URL. */
export function toNodeRedisConnection(url: string): NodeRedisConnection {
  const options = parseUrl(url);
  // With RESP 3, node-redis omits a user without a password, and connects as the default user.
  const isPasswordless = options.username !== undefined && options.password === undefined;
  return { client: 'node-redis', ...options, ...(isPasswordless && { RESP: 2 }) };
}

function checkParameters(parameters: URLSearchParams): void {
  const unknown = [...parameters.keys()].find((name) => !URL_PARAMETERS.includes(name));
  if (unknown !== undefined) {
    throw new ConnectionError(
      `The URL of the connection has the parameter '${unknown.slice(0, 40)}', which ioredis would ignore or read as a string: give ioredis options instead of a URL (a URL may have ${URL_PARAMETERS.join(', ')}; for TLS write rediss://)`,
    );
  }
  checkDatabaseNumber(parameters.get('db'), 'The parameter db in the URL of the connection');
  const family = parameters.get('family');
  if (family !== null && !/^[046]$/.test(family))
    throw new ConnectionError('The parameter family in the URL of the connection must be 4 or 6, or 0 for both');
}

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
