import type { SqlConnection } from '../driver/sql-connection.js';
import { type LockServer, SHARED_SESSIONS, UnsuitableServer } from '../server/lock-server.js';

/** How many times the sessions of two connections are compared. */
const COMPARISONS = 8;

/**
 * Refuses a pooler that shares sessions between transactions. Such a pooler changes the session of a connection, or
 * uses one session for two connections. Poolers announce other sessions than the server's. So there is no pooler in
 * front of a connection whose actual session was announced.
 *
 * @param openAnother opens a second connection in the same way
 * @throws UnsuitableServer
 */
export async function refuseSharedSessions(
  connection: SqlConnection,
  server: LockServer,
  openAnother: () => Promise<SqlConnection>,
): Promise<void> {
  const isSame = async () => (await server.identify(connection)).id === connection.id;
  if (!(await isSame())) throw new UnsuitableServer(SHARED_SESSIONS);
  if (connection.announced === connection.id) return;
  const other = await openAnother();
  try {
    for (let comparison = 0; comparison < COMPARISONS; comparison++) {
      await other.run('BEGIN');
      const { id } = await server.identify(other);
      if (id === connection.id || !(await isSame())) throw new UnsuitableServer(SHARED_SESSIONS);
      await other.run('COMMIT');
      // A pooler often hands out the session that was used last. If sessions are shared, this statement gets the
      // session of the other connection.
      if (!(await isSame())) throw new UnsuitableServer(SHARED_SESSIONS);
    }
  } finally {
    other.close();
  }
}
