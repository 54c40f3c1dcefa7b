import type { SqlConnection } from '../driver/sql-connection.js';

export interface TokenRange {
  readonly token: number;
  readonly reserved: number;
}

/** The result of a successful acquisition. */
export interface TakenLock {
  /** Distinguishes the present hold of the session from earlier ones in the notes, if the server needs that. */
  readonly transaction: number;
  /** The fencing tokens, if the statement that took the lock has noted the holder. */
  readonly tokens?: TokenRange;
}

/** The holder of a lock, as the state table records it. */
export interface HolderEntry {
  readonly key: string;
  readonly owner: string;
  readonly mode: 'exclusive' | 'write';
  /** The number of the session that holds the lock, and the transaction of its {@link TakenLock}. */
  readonly session: number;
  readonly transaction: number;
  readonly leaseTime: number;
  /** How many fencing tokens to reserve for hand-offs. */
  readonly reserve: number;
}

/** A holder before its {@link TakenLock}. */
export type NewHolder = Omit<HolderEntry, 'transaction'>;

/**
 * How sessions take locks and give them back. Each kind of lock has one implementation for each kind of database. All
 * methods reject with the driver's errors or ConnectionLost. If one of them rejects, the session is closed, because it
 * may hold locks.
 */
export interface SessionLocks {
  /** The statements that create the tables that only these locks need, for people to run. */
  readonly tableStatements: readonly string[];
  /** Rejects when such a table, or a permission on it, is missing. This changes nothing. */
  checkTables(control: SqlConnection): Promise<void>;

  /** Changes the settings of the session that all its locks need. */
  prepareSession(session: SqlConnection): Promise<void>;
  /**
   * Restores these settings, because other clients may get the session. `undefined`: there is nothing to restore.
   *
   * @param limit how long to wait for the answer, in milliseconds
   */
  restoreSession?(session: SqlConnection, limit: number): Promise<void>;
  /**
   * Tries to take the first lock of a session. From now on, the server ends the session when it has been idle
   * for `leaseTime` ms. `undefined`: somebody else has the lock, or {@link provide} must be called first.
   */
  begin(session: SqlConnection, key: string, leaseTime: number): Promise<TakenLock | undefined>;
  /** Like {@link begin}, in one statement with the holder's note. Absent: this is not possible. */
  beginNoted?(session: SqlConnection, holder: NewHolder): Promise<TakenLock | undefined>;
  /** Like {@link begin}, for further locks of the session. */
  try(session: SqlConnection, key: string, leaseTime: number): Promise<TakenLock | undefined>;
  /**
   * Waits for the lock. `undefined`: the caller should call {@link provide} and wait again. The lease begins when the
   * lock is granted.
   */
  wait(session: SqlConnection, key: string, leaseTime: number): Promise<TakenLock | undefined>;
  /** Creates the row that the lock needs in the database. False: nothing was missing. */
  provide(control: SqlConnection, key: string): Promise<boolean>;
  /**
   * True: a lock is shown as free as soon as it is released, so that nobody needs to wait until its note is withdrawn.
   */
  readonly showsReleases?: boolean;
  setLease(session: SqlConnection, leaseTime: number): Promise<void>;
  /** Gives back all locks of the session. False: the server reports that they were already free. */
  release(session: SqlConnection, keys: readonly string[]): Promise<boolean>;
  /** Gives back all locks that the session has taken since {@link begin}. */
  undo(session: SqlConnection, keys: readonly string[]): Promise<void>;
}

/** Locks that are held by sessions of PostgreSQL. */
export interface PostgresLocks extends SessionLocks {
  /** The first `server_version_num` that supports these locks. */
  readonly oldest: number;
  /** An SQL condition: the session `a` of `pg_stat_activity` has the lock of the state `s`. */
  readonly isHeld: string;
  /** A pattern for `a.state` of a session that has a lock and runs no statement. */
  readonly idleState: string;
  /** @param newer settings that sessions need, and that only newer servers have */
  useSettings(newer: readonly string[]): void;
}

/** Locks that are held by sessions of MySQL and MariaDB. */
export interface MysqlLocks extends SessionLocks {
  /** An SQL condition: the session `p` of the process list has the lock of the state `s`, whose owner is set. */
  readonly isHeld: string;
  useServer(kind: 'MySQL' | 'MariaDB'): void;
}
