import type { LockBackend } from '../backend.js';
import type { AdvisoryLocksOptions } from './advisory-locks-options.js';
import { type LockKind, openBackend } from './open-backend.js';
import { MysqlAdvisoryLocks } from './session-locks/mysql-advisory-locks.js';
import { PostgresAdvisoryLocks } from './session-locks/postgres-advisory-locks.js';

const ADVISORY: LockKind = {
  factory: 'advisoryLocks()',
  title: 'advisory locks',
  table: 'advisory_lock',
  postgres: (tables, tokens) => new PostgresAdvisoryLocks(tables, tokens),
  mysql: (tables) => new MysqlAdvisoryLocks(tables),
};

/**
 * Keeps locks as advisory locks of a database: `pg_advisory_lock` of PostgreSQL (14 and later), `GET_LOCK` of MySQL and
 * MariaDB. For `RedisLockModule.forRoot({ backend })` and `createLockService`. It connects when it is first used. The
 * driver, `pg` or `mysql2`, has to be installed.
 *
 * ```ts
 * RedisLockModule.forRoot({ backend: advisoryLocks({ url: 'postgres://app:secret@db/shop', createTable: true }) })
 * ```
 *
 * Each held lock uses a connection, whose session is idle and has no open transaction. When a process dies, its locks
 * become free at once. When it hangs, the database frees them when the lease ends. Only exclusive locks exist
 * (`reentrant` and `write`). Semaphores and latches need Redis. These locks and the locks of {@link rowLocks} do not
 * exclude each other.
 *
 * @throws LockConfigurationError naming the option that is missing or wrong
 * @publicApi
 */
export function advisoryLocks(options: AdvisoryLocksOptions): LockBackend {
  return openBackend(ADVISORY, options);
}
