import { randomBytes } from 'node:crypto';
import type { Client, ClientConfig, Pool, PoolClient, QueryResult } from 'pg';
import { type Closable, closeSoon } from './close-soon.js';
import { fromPool } from './from-pool.js';
import { loadDriver } from './load-driver.js';
import type { Driver, DriverConnection, SqlResult } from './sql-connection.js';

/** The kernel detects a dead peer with probes, which begin after this many milliseconds without traffic. */
const PROBE_AFTER = 10_000;

/** Opens connections of `pg` to a URL. */
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

/** Takes connections from the user's pool. When they have ended, it returns them, and the pool closes them. */
export function postgresPoolDriver(pool: Pool, description: string): Driver {
  return {
    description,
    async connect() {
      // The listeners are added before anybody else gets the client, because the packet that makes it ready can also
      // contain an error.
      const take = () =>
        new Promise<{ client: PoolClient; ends: Ends }>((resolve, reject) =>
          pool.connect((error, client) => {
            if (client === undefined) reject(error);
            else resolve({ client, ends: listenToEnd(client as unknown as Client) });
          }),
        );
      const isUsedUp = () => pool.idleCount === 0 && pool.totalCount >= (pool.options?.max ?? Number.POSITIVE_INFINITY);
      const { client, ends } = await fromPool(take, (late) => late.client.release(), isUsedUp);
      // Each connection is released exactly once. The pool throws on a second release, and without any release, it
      // counts the connection as in use forever.
      const giveBack = once(() => client.release(true));
      ends(giveBack);
      return toConnection(client as unknown as Client, ends, giveBack);
    },
  };
}

type Ends = ((listener: (error?: Error) => void) => void) & { readonly error?: Error };

/** Listens from the start, because an `error` event without a listener would end the process. */
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

/** Members of a client that its types omit. */
interface Inside {
  readonly processID?: number;
  readonly connection: { readonly stream: Closable };
}

function toConnection(client: Client, onEnd: Ends, giveBack: () => void): DriverConnection {
  const { processID, connection } = client as unknown as Inside;
  // Statements are sent one after the other, because pg expects its callers to queue.
  let last: Promise<unknown> = Promise.resolve();
  const names = new StatementNames();
  return {
    announced: processID,
    run: (text, parameters) => {
      const answer = last.then(() =>
        parameters === undefined
          ? client.query(text)
          : client.query({ name: names.of(text), text, values: parameters as unknown[] }),
      );
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

/**
 * Statements with parameters have names, so that the server parses and plans each of them once per connection. Names
 * differ between connections, because a pooler without `server_reset_query` keeps the statements of earlier clients.
 */
class StatementNames {
  private readonly prefix = `nestjs_redis_lock_${randomBytes(6).toString('hex')}`;
  private readonly byText = new Map<string, string>();

  of(text: string): string {
    const known = this.byText.get(text);
    if (known !== undefined) return known;
    const name = `${this.prefix}_${this.byText.size}`;
    this.byText.set(text, name);
    return name;
  }
}

/** Returns a function that runs `work` on its first call only. */
function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    work();
  };
}

/** Several statements in one text have several results. Uses the last one. */
function toResult(answer: QueryResult | QueryResult[]): SqlResult {
  const { rows, rowCount, command } = Array.isArray(answer) ? answer[answer.length - 1] : answer;
  return { rows, changed: rowCount ?? 0, lastId: 0, command };
}
