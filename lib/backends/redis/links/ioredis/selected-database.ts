import type { Redis } from 'ioredis';
import { BackendError } from '../../../lock-backend.js';
import { ConnectionError } from '../connection-error.js';
import type { Topology } from '../topology.js';
import { type Client, isCluster } from './client.js';

// An application may call `select()` on a client that it lends. The same key is another lock in another database.

/**
 * Refuses a client whose selected database is not that of its options: locks would be in another database than that of
 * the connections that the library opens with these options, and than that of other processes.
 *
 * @throws ConnectionError
 */
export function refuseOtherDatabase(client: Client): void {
  if (isCluster(client)) return;
  const selected = selectedDatabase(client);
  const database = Number(client.options.db ?? 0);
  if (selected === database) return;
  throw new ConnectionError(
    `The ioredis client of the connection has selected database ${selected}, but its options name database ${database}. Locks use only the database of the options: write db: ${selected} there, or give locks a client of their own, such as client.duplicate()`,
  );
}

/**
 * Why a command must not be sent on a client that was lent: the application has called `select()` since, so two callers
 * could hold the same lock. Returns `undefined` otherwise.
 */
export function refusalAfterSelect(
  client: Redis,
  { database, description }: Pick<Topology, 'database' | 'description'>,
): BackendError | undefined {
  const selected = selectedDatabase(client);
  if (selected === database) return undefined;
  const message = `${description}: the application has called select() on the client of the connection, which is in database ${selected} now, and locks are in database ${database}. Give RedisLockModule its own client, such as client.duplicate()`;
  return new BackendError(message, 'denied', 'refused');
}

/**
 * The database in which a client executes the next command. It is the `db` of its options until somebody calls
 * `select()` on it. ioredis notes the number when the command is written or queued.
 */
function selectedDatabase(client: Redis): number {
  const { condition, options } = client as unknown as Pick<Redis, 'options'> & {
    condition?: { select?: number } | null;
  };
  return Number(condition?.select ?? options.db ?? 0);
}
