import type { SqlConnection } from '../driver/sql-connection.js';

/** What a session got with a lock. */
export interface Grant {
  /** By which the notes tell what the session holds now from what it held before, where the server needs that. */
  readonly transaction: number;
}

/**
 * How sessions take locks and give them back: one implementation for each kind of lock and of database. All methods
 * reject with the driver's errors or ConnectionLost. A session for which one rejects is closed, because it may hold
 * locks.
 */
export interface SessionLocks {
  /** The public function that makes them, for messages: `rowLocks()`. */
  readonly factory: string;
  /** What messages call them: `row locks`. */
  readonly title: string;
  /** The statements that create the tables which only these locks need, for people to run. */
  readonly tableStatements: readonly string[];
  /** Rejects when such a table is not there, or a right on it is missing. It changes nothing. */
  checkTables(control: SqlConnection): Promise<void>;

  /** Sets what the session needs for all its locks. */
  prepareSession(session: SqlConnection): Promise<void>;
  /**
   * Sets that back, for a session that others may get; `undefined`: nothing stays.
   *
   * @param limit how long the answer is awaited, in milliseconds
   */
  restoreSession?(session: SqlConnection, limit: number): Promise<void>;
  /**
   * Tries to take the first lock of a session, which the server ends from now on when it was idle for `leaseTime` ms.
   * `undefined`: somebody else has it, or {@link provide} has something to make.
   */
  begin(session: SqlConnection, key: string, leaseTime: number): Promise<Grant | undefined>;
  /** As {@link begin}, for a session that has begun. */
  try(session: SqlConnection, key: string, leaseTime: number): Promise<Grant | undefined>;
  /**
   * Waits for the lock. `undefined`: the caller should wait anew, after {@link provide}. The lease begins with the
   * grant.
   */
  wait(session: SqlConnection, key: string, leaseTime: number): Promise<Grant | undefined>;
  /** Makes what the lock needs in the database. False: it is there. */
  provide(control: SqlConnection, key: string): Promise<boolean>;
  setLease(session: SqlConnection, leaseTime: number): Promise<void>;
  /** Gives all locks of the session back. False: the server says that they were free before. */
  release(session: SqlConnection, keys: readonly string[]): Promise<boolean>;
  /** Gives back what the session has taken since it {@link begin}s. */
  undo(session: SqlConnection, keys: readonly string[]): Promise<void>;
}

/** Locks of sessions of PostgreSQL. */
export interface PostgresLocks extends SessionLocks {
  /** The first `server_version_num` that has them. */
  readonly oldest: number;
  /** Whether the session `a` of `pg_stat_activity` has the lock of the state `s`, as a condition. */
  readonly isHeld: string;
  /** `a.state` of a session that has a lock and runs no statement, as a pattern. */
  readonly idleState: string;
  /** @param newer settings of this version that sessions need */
  useSettings(newer: readonly string[]): void;
}

/** Locks of sessions of MySQL and MariaDB. */
export interface MysqlLocks extends SessionLocks {
  /** Whether the session `p` of the process list has the lock of the state `s`, which names an owner, as a condition. */
  readonly isHeld: string;
  useServer(kind: 'MySQL' | 'MariaDB'): void;
}
