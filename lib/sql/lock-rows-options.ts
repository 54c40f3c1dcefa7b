import type { Duration } from '../engine/terms/duration.js';

/**
 * Runs one statement with the driver's placeholders (`$1` in PostgreSQL, `?` in MySQL and MariaDB). It returns the
 * rows, or an answer of `pg` (`{ rows }`) or `mysql2` (`[rows, fields]`).
 *
 * @publicApi
 */
export type RowQuery = (sql: string, params: unknown[]) => Promise<unknown>;

/** Options of `lockRows`. @publicApi */
export interface LockRowsOptions {
  /** `'share'`: several transactions can share the lock, but not with an exclusive one. Default `'exclusive'`. */
  readonly mode?: 'exclusive' | 'share';
  /**
   * How long to wait for each row. With 0, it is tried once. Default: as long as the database waits (PostgreSQL:
   * `lock_timeout`, for ever unless set; MySQL and MariaDB: `innodb_lock_wait_timeout`, 50 s unless set). For MySQL and
   * MariaDB, it is rounded up to whole seconds.
   */
  readonly waitTime?: Duration;
  /**
   * `'row'`: locks of `rowLocks`. `'advisory'`: locks of `advisoryLocks`, which need no rows and only work on
   * PostgreSQL. Default `'row'`.
   */
  readonly by?: 'row' | 'advisory';
  /** The table given to `rowLocks` or `advisoryLocks`. Default `'distributed_lock'` or `'advisory_lock'`. */
  readonly table?: string;
  /** The `keyPrefix` of the module. Default `'lock:'`. */
  readonly keyPrefix?: string;
}
