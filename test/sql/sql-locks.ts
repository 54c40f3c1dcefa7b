import { advisoryLocks, rowLocks } from '../../lib/sql.js';
import { SQL_SERVERS } from '../support/servers/sql/sql-server.js';

/** The kinds of locks in SQL, by the names of the functions that make them. */
export const SQL_LOCKS = { rowLocks, advisoryLocks };
export type SqlLocks = keyof typeof SQL_LOCKS;

/** Every kind of locks on every kind of server. */
export const ALL_SQL_LOCKS = (['rowLocks', 'advisoryLocks'] as const).flatMap((locks) =>
  SQL_SERVERS.map((server) => [locks, server] as const),
);
