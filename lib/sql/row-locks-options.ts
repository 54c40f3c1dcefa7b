/** A `Pool` of `pg`. Written out, because only one of the two drivers may be installed. @publicApi */
export interface PostgresPool {
  connect(): Promise<unknown>;
  end(): Promise<unknown>;
}

/** A `Pool` of `mysql2`, or of `mysql2/promise`. @publicApi */
export interface MysqlPool {
  getConnection(...args: never[]): unknown;
  end(...args: never[]): unknown;
}

/** Options of `rowLocks`. Give one of `url` and `pool`. @publicApi */
export interface RowLocksOptions {
  /** `postgres://user:password@host:5432/database`, or `mysql://…` (also for MariaDB). */
  readonly url?: string;
  /**
   * A pool of `pg`, or of `mysql2` (also of `mysql2/promise`), that nothing else uses. The backend keeps the
   * connections that it takes: up to `connections` and one more, or two more if the pool has room for them.
   */
  readonly pool?: PostgresPool | MysqlPool;
  /**
   * The table whose rows are the locks, as `name` or `schema.name`. Default `'distributed_lock'`. The table with their
   * tokens and holders has the same name with the suffix `_state`. Further tables have the suffixes `_client`, and on
   * PostgreSQL `_epoch` and `_floor`.
   */
  readonly table?: string;
  /**
   * Creates the tables if they are missing. Default false: missing tables are an error that contains the statements.
   */
  readonly createTable?: boolean;
  /**
   * How many locks this process can hold and wait for at a time. Each of them uses a connection. The backend uses one
   * or two further connections. Default 10.
   */
  readonly connections?: number;
  /**
   * Whether all clients that take these locks use the same node. If not, Galera clusters and multi-primary groups of
   * MySQL are refused, because each of their nodes could grant the lock to a different holder. Default false.
   */
  readonly singlePrimary?: boolean;
}
