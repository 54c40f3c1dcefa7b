import type { Duration } from '../engine/terms/duration.js';

/**
 * Runs one statement with the driver's own placeholders (`$1` in PostgreSQL, `?` in MySQL and MariaDB). It gives the
 * rows, or an answer of `pg` (`{ rows }`) or `mysql2` (`[rows, fields]`).
 *
 * @publicApi
 */
export type RowQuery = (sql: string, params: unknown[]) => Promise<unknown>;

/** Options of `lockRows`. @publicApi */
export interface LockRowsOptions {
  /** `'share'`: with others that share, but not beside an exclusive one. Default `'exclusive'`. */
  readonly mode?: 'exclusive' | 'share';
  /**
   * How long to wait for each row. 0: try once. Default: as long as the database waits (PostgreSQL: `lock_timeout`, for
   * ever unless set; MySQL and MariaDB: `innodb_lock_wait_timeout`, 50 s unless set). MySQL and MariaDB count whole
   * seconds: it is rounded up.
   */
  readonly waitTime?: Duration;
  /**
   * `'row'`: locks of `rowLocks`. `'advisory'`: locks of `advisoryLocks`, on PostgreSQL alone; no rows are needed.
   * Default `'row'`.
   */
  readonly by?: 'row' | 'advisory';
  /** As in `rowLocks` or `advisoryLocks`. Default `'distributed_lock'` or `'advisory_lock'`. */
  readonly table?: string;
  /** As the module's. Default `'lock:'`. */
  readonly keyPrefix?: string;
}
