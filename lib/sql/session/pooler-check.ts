import type { SqlConnection } from '../driver/sql-connection.js';
import { type LockServer, SHARED_SESSIONS, UnsuitableServer } from '../server/lock-server.js';

/** How many times the sessions of two connections are compared. */
const COMPARISONS = 8;

/**
 * Refuses a pooler that shares sessions between transactions: it gives a connection another session, or one session to
 * two connections. A pooler announces other sessions than the server's, so a connection whose own session was announced
 * has no pooler in front of it.
 *
 * @param openAnother a second connection by the same way
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
