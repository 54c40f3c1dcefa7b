import type { LockBackend } from '../backend.js';
import { type LockKind, openBackend } from './open-backend.js';
import type { RowLocksOptions } from './row-locks-options.js';
import { MysqlRowLocks } from './session-locks/mysql-row-locks.js';
import { PostgresRowLocks } from './session-locks/postgres-row-locks.js';

const ROWS: LockKind = {
  factory: 'rowLocks()',
  title: 'row locks',
  table: 'distributed_lock',
  postgres: ({ rows }) => new PostgresRowLocks(rows),
  mysql: ({ rows }) => new MysqlRowLocks(rows),
};

/**
 * Keeps locks as rows of a PostgreSQL, MySQL or MariaDB database. For `RedisLockModule.forRoot({ backend })` and
 * `createLockService`. It connects when it is first used. The driver, `pg` or `mysql2`, has to be installed.
 *
 * ```ts
 * RedisLockModule.forRoot({ backend: rowLocks({ url: 'postgres://app:secret@db/shop', createTable: true }) })
 * ```
 *
 * Each held lock is a transaction on a separate connection that has locked the row. A release is its COMMIT. When a
 * process dies, its locks become free at once. When it hangs, the database frees them when the lease ends. Only
 * exclusive locks exist (`reentrant` and `write`). Semaphores and latches need Redis.
 *
 * @see {@link advisoryLocks}, which are faster and leave no transaction open
 * @throws LockConfigurationError naming the option that is missing or wrong
 * @publicApi
 */
export function rowLocks(options: RowLocksOptions): LockBackend {
  return openBackend(ROWS, options);
}
