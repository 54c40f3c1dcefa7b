import { BackendError } from '../../lock-backend.js';
import type { Topology } from '../links/topology.js';
import { unexpected } from '../reply-shape.js';
import { errorCode, messageOf, withoutSecrets } from './redis-errors.js';

/**
 * Checks that the server has the requested database. A client may report a missing one only in its log, and continue in
 * database 0. Most clusters have no other. A borrowed connection to one server is not checked, because the application
 * may select databases itself.
 *
 * @throws BackendError when it cannot be used
 */
export async function checkDatabaseExists(
  topology: Pick<Topology, 'owned' | 'isCluster' | 'database' | 'description'>,
  send: (name: string, args: readonly string[]) => Promise<unknown>,
): Promise<void> {
  const { owned, isCluster, database, description } = topology;
  if (database === 0 || !(owned || isCluster)) return;
  try {
    const reply = await send('select', [String(database)]);
    if (reply !== 'OK') throw unexpected(reply, description);
  } catch (error) {
    const message = messageOf(error);
    // A server that does not know SELECT, such as a Sentinel, says nothing about the database.
    if (!/^(ERR|NOPERM)\b/.test(message) || errorCode(message) === 'UNKNOWN') throw error;
    const remedy = /^NOPERM/.test(message)
      ? 'Give the user +select, see docs/permissions.md'
      : isCluster
        ? "Remove the database from the connection, and set a keyPrefix; or raise 'cluster-databases', which Valkey 9 has"
        : "Name a database that exists in the connection, or raise 'databases' in redis.conf";
    throw new BackendError(
      `${description}: database ${database} cannot be used (${message}). ${remedy}`,
      'denied',
      'refused',
      { cause: withoutSecrets(error) },
    );
  }
}
