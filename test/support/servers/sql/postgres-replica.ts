import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../free-port.js';
import { find, program } from './postgres.js';
import { asNobody, giveToNobody, runToEnd, SqlServer } from './sql-server.js';

/** A hot standby of a PostgreSQL server, with streaming replication. `SELECT pg_promote()` makes it the primary. */
export async function startPostgresReplica(primary: SqlServer): Promise<SqlServer> {
  const folder = await mkdtemp(join('/tmp', 'sql-'));
  await giveToNobody(folder);
  const from = ['-h', primary.folder, '-p', String(primary.port), '-U', 'admin'];
  const options = ['-D', join(folder, 'data'), '--write-recovery-conf', '--wal-method=stream', '--checkpoint=fast'];
  await runToEnd(asNobody(find('pg_basebackup'), [...from, ...options], folder));
  const ready = /ready to accept read.only connections/;
  const replica = new SqlServer('PostgreSQL', { ...program, ready }, folder, await freePort(), 'fast');
  await replica.start();
  return replica;
}
