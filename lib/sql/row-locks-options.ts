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
   * A pool of `pg`, or of `mysql2` (also of `mysql2/promise`), that nothing else uses: the backend keeps the
   * connections that it takes, up to `connections` and one more, or two where it has room for them.
   */
  readonly pool?: PostgresPool | MysqlPool;
  /**
   * The table whose rows are the locks, as `name` or `schema.name`. Default `'distributed_lock'`. The table with their
   * tokens and holders has the same name with `_state` behind it, and more tables `_client`, and on PostgreSQL `_epoch`
   * and `_floor`.
   */
  readonly table?: string;
  /** Creates the tables where they are missing. Default false: their absence is an error that holds the statements. */
  readonly createTable?: boolean;
  /**
   * How many locks this process can hold and wait for at a time: each takes a connection. One or two more are used beside
   * them.
   * Default 10.
   */
  readonly connections?: number;
  /**
   * True: all clients that take these locks use one and the same node. Galera clusters and multi-primary groups of
   * MySQL are refused without it, because each of their nodes would give the lock to a separate holder. Default false.
   */
  readonly singlePrimary?: boolean;
}
