import type { Client, ClientConfig, Pool, PoolClient, QueryResult } from 'pg';
import { fromPool } from './from-pool.js';
import { type Closable, closeSoon, once } from './goodbye.js';
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

/** Connections of a pool that the user has made. They are kept until they end, and then given back to be closed. */
export function postgresPoolDriver(pool: Pool, description: string): Driver {
  return {
    description,
    async connect() {
      // The listeners are there before the client is seen by anybody: an error can be in the packet with which it
      // became ready.
      const take = () =>
        new Promise<{ client: PoolClient; ends: Ends }>((resolve, reject) =>
          pool.connect((error, client) => {
            if (client === undefined) reject(error);
            else resolve({ client, ends: listenToEnd(client as unknown as Client) });
          }),
        );
      const { client, ends } = await fromPool(take, (late) => late.client.release());
      // The pool throws at the second time, and keeps a place for a connection that never comes back.
      const giveBack = once(() => client.release(true));
      ends(giveBack);
      return toConnection(client as unknown as Client, ends, giveBack);
    },
  };
}

type Ends = ((listener: (error?: Error) => void) => void) & { readonly error?: Error };

/** Listens from the start: an `error` event without a listener would end the process. */
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
  readonly processID?: number;
  readonly connection: { readonly stream: Closable };
}

function toConnection(client: Client, onEnd: Ends, giveBack: () => void): DriverConnection {
  const { processID, connection } = client as unknown as Inside;
  // One after the other: pg expects its callers to queue.
  let last: Promise<unknown> = Promise.resolve();
  return {
    announced: processID,
    run: (sql, parameters) => {
      const answer = last.then(() => client.query(sql, parameters as unknown[] | undefined));
      last = answer.catch(() => {});
      return answer.then(toResult);
    },
    onEnd,
    close: () => {
      giveBack();
      closeSoon(connection.stream);
    },
    destroy: () => {
      connection.stream.destroy();
      giveBack();
    },
    unref: () => connection.stream.unref(),
  };
}

/** Several statements in one text have several results: the last one is meant. */
function toResult(answer: QueryResult | QueryResult[]): SqlResult {
  const { rows, rowCount, command } = Array.isArray(answer) ? answer[answer.length - 1] : answer;
  return { rows, changed: rowCount ?? 0, lastId: 0, command };
}
