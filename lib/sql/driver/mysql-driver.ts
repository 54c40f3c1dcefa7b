import type { Connection, ConnectionOptions, Pool, PoolConnection } from 'mysql2';
import { fromPool } from './from-pool.js';
import { loadDriver } from './load-driver.js';
import type { Driver, DriverConnection, SqlResult } from './sql-connection.js';

/** A dead peer is noticed by the kernel's probes, which begin after this time, in milliseconds. */
const PROBE_AFTER = 10_000;

/** Connections of `mysql2`, by a URL. */
export function mysqlDriver(url: string, description: string, connectTimeout: number): Driver {
  const config: ConnectionOptions = {
    ...fromUrl(url),
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

/** Connections of a pool that the user has made. They are kept, and never given back for others to use. */
export function mysqlPoolDriver(pool: Pool, description: string): Driver {
  return {
    description,
    async connect() {
      const take = () =>
        new Promise<PoolConnection>((resolve, reject) =>
          pool.getConnection((error, got) => (error ? reject(error) : resolve(got))),
        );
      const connection = await fromPool(take, (late) => late.release());
      return toConnection(connection, listenToEnd(connection), () => connection.destroy());
    },
  };
}

/** mysql2 reads URLs, but neither of `mariadb:` nor with options beside them. */
function fromUrl(url: string): ConnectionOptions {
  const { hostname, port, username, password, pathname, searchParams } = new URL(url);
  const ssl = searchParams.get('ssl');
  return {
    host: decodeURIComponent(hostname),
    port: port === '' ? 3306 : Number(port),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: decodeURIComponent(pathname.slice(1)),
    ...(ssl === null ? {} : { ssl: ssl === 'true' ? {} : ssl }),
  };
}

type Ends = (listener: (error?: Error) => void) => void;

/** Listens from the start: an `error` that nobody listens to would end the process. */
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

/** Parts of a connection that its types leave out. */
interface Inside {
  readonly stream: { on(event: 'close', listener: () => void): void; destroy(): void; unref(): void };
}

/** What a driver answers to a statement: rows, or what a change did. */
type Answer = readonly Record<string, unknown>[] | { readonly affectedRows: number; readonly insertId: number };

function toConnection(connection: Connection, onEnd: Ends, close: () => void): DriverConnection {
  const { stream } = connection as unknown as Inside;
  return {
    id: connection.threadId as number,
    run: (sql, parameters) =>
      new Promise((resolve, reject) => {
        const done = (error: Error | null, answer: unknown) =>
          error === null || error === undefined ? resolve(toResult(answer as Answer)) : reject(error);
        if (parameters === undefined) connection.query(sql, done);
        else connection.execute(sql, parameters as never[], done);
      }),
    onEnd,
    close,
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
