import type { SessionIdentity, SqlConnection } from '../driver/sql-connection.js';
import type { Grant, SessionLocks } from '../session-locks/session-locks.js';

/** The holder of a lock, as the state table records it. */
export interface HolderEntry {
  readonly key: string;
  readonly owner: string;
  readonly mode: 'exclusive' | 'write';
  /** The number of the session that holds the lock, and what its {@link Grant} says. */
  readonly session: number;
  readonly transaction: number;
  readonly leaseTime: number;
  /** How many fencing tokens to reserve for hand-offs. */
  readonly reserve: number;
}

/** What identifies an entry of the state table. */
export interface HolderNote {
  readonly key: string;
  readonly owner: string;
  readonly token: number;
}

export interface TokenRange {
  readonly token: number;
  readonly reserved: number;
}

/** The state table's entry for a lock whose holder's session is alive. */
export interface KnownState {
  readonly owner: string;
  readonly mode: 'exclusive' | 'write';
  /** Milliseconds until the server ends the session, unless it is used before. */
  readonly remaining: number;
  readonly session: number;
  /** The last fencing token that was written for it. */
  readonly token: number;
}

/**
 * The statements of one kind of database that are the same for all kinds of locks. They run in autocommit, nearly all
 * on the control connection, and reject with the driver's errors or ConnectionLost.
 */
export interface LockServer {
  /** `PostgreSQL`, `MySQL or MariaDB`. */
  readonly title: string;
  /** The locks that its sessions take. */
  readonly locks: SessionLocks;
  /** The statements that create the tables, for people to run. */
  readonly tableStatements: readonly string[];
  readonly clients: ClientTable;
  /** Whether an error says that somebody else makes the same table. */
  isCreatedMeanwhile(error: unknown): boolean;

  /** Which session it is. This changes nothing. */
  identify(connection: SqlConnection): Promise<SessionIdentity>;
  /**
   * @throws UnsuitableServer when the server cannot keep locks: it is too old, say, or one of several that accept
   * writes. It changes nothing.
   */
  checkServer(control: SqlConnection): Promise<void>;
  /** @throws UnsuitableServer when a setting does not stay */
  prepareControl(control: SqlConnection): Promise<void>;
  /**
   * Sets back what {@link prepareControl} has set, for a session that others may get; `undefined`: nothing stays.
   *
   * @param limit how long the answer is awaited, in milliseconds
   */
  restoreControl?(control: SqlConnection, limit: number): Promise<void>;
  /** Rejects when a table is not there, or a right on it is missing. It changes nothing. */
  checkTables(control: SqlConnection): Promise<void>;
  /** To be called on each new control connection: makes later tokens exceed those that a crash of the server lost. */
  prepareTokens(control: SqlConnection): Promise<void>;

  /** Any statement: the server counts the idle time from now on. */
  touch(session: SqlConnection): Promise<void>;

  /** Makes the row of the state where it is missing. */
  makeState(control: SqlConnection, key: string): Promise<void>;
  /** How many holders {@link note} can note in one statement. */
  readonly mostNotes: number;
  /**
   * Notes holders of different locks and gives them their tokens; `undefined`: the row of the state is missing. Either
   * all are noted, or it rejects.
   */
  note(control: SqlConnection, entries: readonly HolderEntry[]): Promise<readonly (TokenRange | undefined)[]>;
  noteLease(control: SqlConnection, key: string, owner: string, leaseTime: number): Promise<void>;
  /**
   * These owners hold these locks no longer, unless they have got them again. Absent: the sessions alone show it.
   */
  withdraw?(control: SqlConnection, notes: readonly HolderNote[]): Promise<void>;
  /** Makes later tokens of the lock exceed this one. */
  raiseToken(control: SqlConnection, key: string, token: number): Promise<void>;
  read(control: SqlConnection, key: string): Promise<KnownState | undefined>;
  /** The keys of all locks whose holder's session lives. */
  heldKeys(control: SqlConnection): Promise<readonly string[]>;
  /**
   * Ends the session that holds this lock. False: owner or token are no longer those that were read, and nothing was
   * done.
   */
  kill(control: SqlConnection, key: string, state: KnownState): Promise<boolean>;
  /** Which of these sessions run a statement, by their numbers. */
  running(control: SqlConnection, sessions: readonly number[]): Promise<readonly number[]>;
  /** Ends this session unless it runs a statement, or is another one by now. */
  endIdle(control: SqlConnection, session: SessionIdentity): Promise<void>;
  /** Ends the statement that this session waits with. */
  cancel(control: SqlConnection, session: number): Promise<void>;
}

/** The table with a record for each client. */
export interface ClientTable {
  readonly statement: string;
  /** Keeps the record for `lifetime` milliseconds, and drops those that are out of date. */
  write(control: SqlConnection, id: string, record: string, lifetime: number): Promise<void>;
  remove(control: SqlConnection, id: string): Promise<void>;
  /** @param id of one client; `undefined`: all */
  read(control: SqlConnection, id?: string): Promise<readonly WrittenRecord[]>;
}

export interface WrittenRecord {
  readonly record: string;
  /** How long ago it was written, in milliseconds. */
  readonly age: number;
}

/** How far, in µs, reserved tokens may run ahead of the database's clock. */
export const MAX_LEAD = 100_000;

/** The advice for connections that share sessions of the server. */
export const SHARED_SESSIONS =
  'locks need a session of the server for each connection, and here a pooler shares sessions between transactions: connect to the database itself, or to a pooler that keeps a session for as long as the client is connected (session pooling)';

/** The database cannot keep locks, whatever is tried. */
export class UnsuitableServer extends Error {
  override readonly name = 'UnsuitableServer';
}
