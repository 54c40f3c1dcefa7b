import type { LockBackend } from '../backends/lock-backend.js';
import { type LockKind, openBackend } from './open-backend.js';
import type { RowLocksOptions } from './row-locks-options.js';
import { MysqlRowLocks } from './session-locks/mysql-row-locks.js';
import { PostgresRowLocks } from './session-locks/postgres-row-locks.js';

const ROWS: LockKind = {
  factory: 'rowLocks()',
  table: 'distributed_lock',
  postgres: ({ rows }) => new PostgresRowLocks(rows),
  mysql: ({ rows }) => new MysqlRowLocks(rows),
};

/**
 * Keeps locks as rows of a PostgreSQL, MySQL or MariaDB database: for `RedisLockModule.forRoot({ backend })` and
 * `createLockService`. It connects when it is first used. The driver, `pg` or `mysql2`, has to be installed.
 *
 * ```ts
 * RedisLockModule.forRoot({ backend: rowLocks({ url: 'postgres://app:secret@db/shop', createTable: true }) })
 * ```
 *
 * An acquisition is a transaction on a separate connection that holds the row's lock; releasing it is COMMIT. A process
 * that dies frees its locks at once, and one that hangs after the lease, by the database's own timer. There are
 * exclusive locks only (`reentrant` and `write`); semaphores and latches need Redis.
 *
 * @see {@link advisoryLocks}, which are faster and leave no transaction open
 * @throws LockConfigurationError naming the option that is missing or wrong
 * @publicApi
 */
export function rowLocks(options: RowLocksOptions): LockBackend {
  return openBackend(ROWS, options);
}
