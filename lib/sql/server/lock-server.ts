import type { SessionIdentity, SqlConnection } from '../driver/sql-connection.js';
import type { HolderEntry, SessionLocks, TokenRange } from '../session-locks/session-locks.js';

/** The words for one kind of locks in messages. */
export interface LockWords {
  /** The public function that creates the backend: `rowLocks()`. */
  readonly factory: string;
  /** `row locks`. */
  readonly title: string;
}

/** What identifies an entry of the state table. */
export interface HolderNote {
  readonly key: string;
  readonly owner: string;
  readonly token: number;
}

/** The state table's entry for a lock whose holder's session is alive. */
export interface KnownState {
  readonly owner: string;
  readonly mode: 'exclusive' | 'write';
  /** Milliseconds until the server ends the session, unless it runs a statement before. */
  readonly remaining: number;
  readonly session: number;
  /** The last fencing token that was written for this lock. */
  readonly token: number;
}

/**
 * The statements for one kind of database that are the same for all kinds of locks. They run in autocommit, nearly all
 * on the control connection. They reject with the driver's errors or ConnectionLost.
 */
export interface LockServer {
  /** The words for these locks in messages. */
  readonly words: LockWords;
  /** The locks that sessions of this server take. */
  readonly locks: SessionLocks;
  /** The statements that create the tables, for people to run. */
  readonly tableStatements: readonly string[];
  readonly clients: ClientTable;
  /** Whether an error says that another client is creating the same table. */
  isCreatedMeanwhile(error: unknown): boolean;

  /** Identifies the session of a connection. This changes nothing. */
  identify(connection: SqlConnection): Promise<SessionIdentity>;
  /**
   * Checks the server. This changes nothing.
   *
   * @throws UnsuitableServer when the server cannot keep locks, for example because it is too old, or because it is one
   * of several servers that accept writes
   */
  checkServer(control: SqlConnection): Promise<void>;
  /** @throws UnsuitableServer when the session does not keep a setting */
  prepareControl(control: SqlConnection): Promise<void>;
  /**
   * Restores the settings that {@link prepareControl} changed, because other clients may get the session. `undefined`:
   * there is nothing to restore.
   *
   * @param limit how long to wait for the answer, in milliseconds
   */
  restoreControl?(control: SqlConnection, limit: number): Promise<void>;
  /** Rejects when a table, or a permission on it, is missing. This changes nothing. */
  checkTables(control: SqlConnection): Promise<void>;
  /**
   * Makes later tokens exceed those that were lost in a crash of the server. To be called on each new control
   * connection.
   */
  prepareTokens(control: SqlConnection): Promise<void>;

  /** Runs any statement, so that the server counts the idle time from now on. */
  touch(session: SqlConnection): Promise<void>;

  /** Creates the row of the lock in the state table if it is missing. */
  makeState(control: SqlConnection, key: string): Promise<void>;
  /** How many holders {@link note} can record in one statement. */
  readonly mostNotes: number;
  /**
   * Records holders of different locks and issues their tokens. `undefined`: the lock has no row in the state table.
   * Either records all of them, or rejects.
   */
  note(control: SqlConnection, entries: readonly HolderEntry[]): Promise<readonly (TokenRange | undefined)[]>;
  noteLease(control: SqlConnection, key: string, owner: string, leaseTime: number): Promise<void>;
  /**
   * Records that these owners no longer hold these locks, unless they have acquired them again. Absent: the sessions
   * show this without a note.
   */
  withdraw?(control: SqlConnection, notes: readonly HolderNote[]): Promise<void>;
  read(control: SqlConnection, key: string): Promise<KnownState | undefined>;
  /** The keys of all locks whose holder's session is alive. */
  heldKeys(control: SqlConnection): Promise<readonly string[]>;
  /**
   * Ends the session that holds this lock. Returns false, and does nothing, if the owner or the token has changed since
   * it was read.
   */
  kill(control: SqlConnection, key: string, state: KnownState): Promise<boolean>;
  /** Finds which of these sessions run a statement. Sessions are given by their numbers. */
  running(control: SqlConnection, sessions: readonly number[]): Promise<readonly number[]>;
  /** Ends this session, unless it runs a statement or its number belongs to another session by now. */
  endIdle(control: SqlConnection, session: SessionIdentity): Promise<void>;
  /** Cancels the statement with which this session waits. */
  cancel(control: SqlConnection, session: number): Promise<void>;
}

/** The table that has a record for each client. */
export interface ClientTable {
  /** Stores the record for `lifetime` milliseconds, and removes expired records. */
  write(control: SqlConnection, id: string, record: string, lifetime: number): Promise<void>;
  remove(control: SqlConnection, id: string): Promise<void>;
  /** @param id of one client; `undefined`: of all clients */
  read(control: SqlConnection, id?: string): Promise<readonly WrittenRecord[]>;
}

export interface WrittenRecord {
  readonly record: string;
  /** How long ago it was written, in milliseconds. */
  readonly age: number;
}

/** How far, in µs, reserved tokens may run ahead of the database's clock. */
export const MAX_LEAD = 100_000;

/** The advice when connections share sessions of the server. */
export const SHARED_SESSIONS =
  'locks need a session of the server for each connection, and here a pooler shares sessions between transactions: connect to the database itself, or to a pooler that keeps a session for as long as the client is connected (session pooling)';

/** The database cannot keep locks. Another attempt would fail as well. */
export class UnsuitableServer extends Error {
  override readonly name = 'UnsuitableServer';
}
