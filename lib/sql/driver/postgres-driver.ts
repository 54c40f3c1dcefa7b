import type { Client, ClientConfig, Pool, QueryResult } from 'pg';
import { fromPool } from './from-pool.js';
import { loadDriver } from './load-driver.js';
import type { Driver, DriverConnection, SqlResult } from './sql-connection.js';

/** A dead peer is noticed by the kernel's probes, which begin after this time, in milliseconds. */
const PROBE_AFTER = 10_000;

/** Connections of `pg`, by a URL. */
export function postgresDriver(url: string, description: string, connectTimeout: number): Driver {
  const config: ClientConfig = {
    connectionString: url,
    connectionTimeoutMillis: connectTimeout,
    keepAlive: true,
    keepAliveInitialDelayMillis: PROBE_AFTER,
    application_name: 'nestjs-redis-lock',
  };
  return {
    description,
    async connect() {
      const pg = await loadDriver('pg', () => import('pg'));
      const client = new (pg.default?.Client ?? pg.Client)(config);
      const ends = listenToEnd(client);
      await client.connect();
      return toConnection(client, ends, () => void client.end().catch(() => {}));
    },
  };
}

/** Connections of a pool that the user has made. They are kept, and never given back for others to use. */
export function postgresPoolDriver(pool: Pool, description: string): Driver {
  return {
    description,
    async connect() {
      const client = await fromPool(
        () => pool.connect(),
        (late) => late.release(),
      );
      return toConnection(client as unknown as Client, listenToEnd(client as unknown as Client), () =>
        client.release(true),
      );
    },
  };
}

type Ends = ((listener: (error?: Error) => void) => void) & { readonly error?: Error };

/** Listens from the start: an `error` that nobody listens to would end the process. */
function listenToEnd(client: Client): Ends {
  let ended: { error?: Error } | undefined;
  const listeners: ((error?: Error) => void)[] = [];
  const end = (error?: Error) => {
    ended ??= { error };
    for (const listener of listeners) listener(error);
  };
  client.on('error', end);
  client.on('end', () => end());
  return (listener) => {
    listeners.push(listener);
    if (ended !== undefined) listener(ended.error);
  };
}

/** Parts of a client that its types leave out. */
interface Inside {
  readonly processID: number;
  readonly connection: { readonly stream: { destroy(): void } };
  unref?(): void;
}

async function toConnection(client: Client, onEnd: Ends, close: () => void): Promise<DriverConnection> {
  const inside = client as unknown as Inside;
  const { rows } = await client.query('SELECT pg_backend_pid() AS id');
  // One after the other: pg wants its callers to queue.
  let last: Promise<unknown> = Promise.resolve();
  return {
    id: Number(rows[0].id),
    run: (sql, parameters) => {
      const answer = last.then(() => client.query(sql, parameters as unknown[] | undefined));
      last = answer.catch(() => {});
      return answer.then(toResult);
    },
    onEnd,
    close,
    destroy: () => {
      inside.connection.stream.destroy();
      close();
    },
    unref: () => inside.unref?.(),
  };
}

/** Several statements in one text have several results: the last one is meant. */
function toResult(answer: QueryResult | QueryResult[]): SqlResult {
  const { rows, rowCount, command } = Array.isArray(answer) ? answer[answer.length - 1] : answer;
  return { rows, changed: rowCount ?? 0, lastId: 0, command };
}
