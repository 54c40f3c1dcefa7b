import type { Connection, ConnectionOptions, Pool, PoolConnection } from 'mysql2';
import { type Closable, closeSoon } from './close-soon.js';
import { fromPool } from './from-pool.js';
import { loadDriver } from './load-driver.js';
import type { Driver, DriverConnection, SqlResult } from './sql-connection.js';

/** The kernel detects a dead peer with probes, which begin after this many milliseconds without traffic. */
const PROBE_AFTER = 10_000;

/** Opens connections of `mysql2` to a URL. */
export function mysqlDriver(url: string, description: string, connectTimeout: number): Driver {
  const config: ConnectionOptions = {
    ...configFromUrl(url),
    connectTimeout,
    enableKeepAlive: true,
    keepAliveInitialDelay: PROBE_AFTER,
  };
  return {
    description,
    async connect() {
      const mysql = await loadDriver('mysql2', () => import('mysql2'));
      const connection = (mysql.default ?? mysql).createConnection(config);
      const onEnd = listenToEnd(connection);
      await new Promise<void>((resolve, reject) =>
        connection.connect((error) => (error === null || error === undefined ? resolve() : reject(error))),
      );
      return toConnection(connection, onEnd, () => connection.end(() => {}));
    },
  };
}

/** Takes connections from the user's pool. They are kept until they end. Then the pool drops them. */
export function mysqlPoolDriver(pool: Pool, description: string): Driver {
  return {
    description,
    async connect() {
      const take = () =>
        new Promise<{ connection: PoolConnection; ends: Ends }>((resolve, reject) =>
          pool.getConnection((error, connection) =>
            error ? reject(error) : resolve({ connection, ends: listenToEnd(connection) }),
          ),
        );
      const { connection, ends } = await fromPool(
        take,
        (late) => late.connection.release(),
        () => isUsedUp(pool),
      );
      return toConnection(connection, ends, () => connection.destroy());
    },
  };
}

/** Members of a pool that its types omit. */
interface InsidePool {
  readonly config?: { readonly connectionLimit?: number };
  readonly _allConnections?: { readonly length: number };
  readonly _freeConnections?: { readonly length: number };
}

function isUsedUp(pool: Pool): boolean {
  const { config, _allConnections: all, _freeConnections: free } = pool as unknown as InsidePool;
  return free?.length === 0 && all !== undefined && all.length >= (config?.connectionLimit ?? Number.POSITIVE_INFINITY);
}

/** Replaces the parser of mysql2, which supports neither `mariadb:` URLs nor further options beside a URL. */
export function configFromUrl(url: string): ConnectionOptions {
  const { hostname, port, username, password, pathname, searchParams } = new URL(url);
  const { ssl } = sslOf(searchParams);
  return {
    // An IPv6 address is in brackets.
    host: decodeURIComponent(hostname.replace(/^\[(.*)\]$/, '$1')),
    port: port === '' ? 3306 : Number(port),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: decodeURIComponent(pathname.slice(1)),
    ...(ssl === undefined ? {} : { ssl }),
  };
}

const SSL_MODES: Readonly<Record<string, ConnectionOptions['ssl']>> = {
  disable: undefined,
  disabled: undefined,
  prefer: undefined,
  preferred: undefined,
  require: { rejectUnauthorized: false },
  required: { rejectUnauthorized: false },
  'verify-ca': {},
  'verify-full': { verifyIdentity: true },
  'verify-identity': { verifyIdentity: true },
};

/**
 * The TLS settings of a URL: `ssl` as in mysql2 (true, false, a profile, or JSON), or `sslmode` as in PostgreSQL and
 * MySQL.
 */
export function sslOf(parameters: URLSearchParams): {
  readonly ssl?: ConnectionOptions['ssl'];
  readonly problem?: string;
} {
  const mode = ['sslmode', 'ssl-mode', 'sslMode'].map((name) => parameters.get(name)).find((value) => value !== null);
  if (mode !== undefined && mode !== null) {
    const known = mode.toLowerCase().replaceAll('_', '-');
    if (known in SSL_MODES) return { ssl: SSL_MODES[known] };
    return { problem: `url has an sslmode that is not known: write one of ${Object.keys(SSL_MODES).join(', ')}` };
  }
  const ssl = parameters.get('ssl');
  if (ssl === null || ssl === 'false' || ssl === '0') return {};
  if (ssl === '' || ssl === 'true' || ssl === '1') return { ssl: {} };
  if (!ssl.startsWith('{')) return { ssl };
  try {
    return { ssl: JSON.parse(ssl) };
  } catch {
    return { problem: 'url has an ssl that is not JSON: write true, false, or percent-encoded JSON' };
  }
}

type Ends = (listener: (error?: Error) => void) => void;

/** Listens from the start, because an `error` event without a listener would end the process. */
function listenToEnd(connection: Connection): Ends {
  let ended: { error?: Error } | undefined;
  const listeners: ((error?: Error) => void)[] = [];
  const end = (error?: Error) => {
    ended ??= { error };
    for (const listener of listeners) listener(error);
  };
  connection.on('error', (error: Error) => end(error));
  connection.on('end', () => end());
  (connection as unknown as Inside).stream.on('close', () => end());
  return (listener) => {
    listeners.push(listener);
    if (ended !== undefined) listener(ended.error);
  };
}

/** Members of a connection that its types omit. */
interface Inside {
  readonly stream: Closable & { on(event: 'close', listener: () => void): void };
}

/** A driver's answer to a statement: rows, or the effect of a change. */
type Answer = readonly Record<string, unknown>[] | { readonly affectedRows: number; readonly insertId: number };

function toConnection(connection: Connection, onEnd: Ends, sayGoodbye: () => void): DriverConnection {
  const { stream } = connection as unknown as Inside;
  return {
    announced: connection.threadId ?? undefined,
    run: (sql, parameters) =>
      new Promise((resolve, reject) => {
        const done = (error: Error | null, answer: unknown) =>
          error === null || error === undefined ? resolve(toResult(answer as Answer)) : reject(error);
        if (parameters === undefined) connection.query(sql, done);
        else connection.execute(sql, parameters as never[], done);
      }),
    onEnd,
    close: () => {
      sayGoodbye();
      closeSoon(stream);
    },
    destroy: () => {
      stream.destroy();
      connection.destroy();
    },
    unref: () => stream.unref(),
  };
}

function toResult(answer: Answer): SqlResult {
  if (Array.isArray(answer)) return { rows: answer, changed: 0, lastId: 0 };
  const { affectedRows, insertId } = answer as Exclude<Answer, readonly unknown[]>;
  return { rows: [], changed: affectedRows, lastId: Number(insertId) };
}
