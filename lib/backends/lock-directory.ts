import type { LockType } from './lock-requests.js';

/**
 * The record that a client writes about itself: who it is, what it holds and what it waits for. Times are in
 * milliseconds. @publicApi
 */
export interface ClientRecord {
  /** The owners of its locks are `<clientId>:<n>`. */
  readonly clientId: string;
  readonly application: string;
  readonly host: string;
  readonly pid: number;
  /** The application's version; `''`: not known. */
  readonly version: string;
  /** When the client was made, in milliseconds since 1970, by the clock of its host. */
  readonly since: number;
  /** How many locks it holds, and permits that it renews. */
  readonly held: number;
  /** How many of its callers wait for a lock. */
  readonly waiting: number;
  /** How long the first of them has waited; 0 if none waits. */
  readonly longestWait: number;
  /** Up to 20 of the locks that it holds, the oldest first. */
  readonly holds: readonly HoldRecord[];
  /** Up to 20 of the locks that it waits for, the longest wait first. */
  readonly waits: readonly WaitRecord[];
}

/** A lock that a client holds. @publicApi */
export interface HoldRecord {
  readonly key: string;
  readonly type: LockType;
  readonly owner: string;
  /**
   * The template of the decorator, `Class.method` where the key is a function, or the option `group`; `''`: none was
   * given.
   */
  readonly group: string;
  /** `Class.method` of a decorated method; `''` for other callers. */
  readonly method: string;
  readonly heldFor: number;
}

/** A lock that callers of one client wait for. @publicApi */
export interface WaitRecord {
  readonly key: string;
  readonly type: LockType;
  /** The group and method of the first caller, as in {@link HoldRecord}. */
  readonly group: string;
  readonly method: string;
  /** How many callers of the client wait. */
  readonly waiters: number;
  /** How long the first of them has waited. */
  readonly waitedFor: number;
}

/** @publicApi */
export interface KeyPage {
  /** Keys of locks, in no order. One that was there all the time is on at least one page; one may be on two pages. */
  readonly keys: readonly string[];
  /**
   * Keys of semaphores and latches that this library has set up or found too few permits in, as far as the backend
   * knows them.
   */
  readonly synchronizers?: readonly string[];
  /** For the next page; undefined: this is the last one. */
  readonly cursor: string | undefined;
}

/**
 * Which locks and clients there are: the part of a backend for people. It never serves an acquisition.
 *
 * @publicApi
 */
export interface LockDirectory {
  /**
   * The keys of present locks, semaphores and latches that consist of `prefix`, taken verbatim, and a rest that matches
   * the glob pattern `match`. It does not block the server, however many keys there are.
   *
   * @param count about how many; a page may have more or fewer, also none
   * @returns undefined for a cursor that is none of this backend's
   * @throws BackendError
   */
  list(prefix: string, match: string, cursor: string | undefined, count: number): Promise<KeyPage | undefined>;

  /**
   * Stores the record of a client for `lifetime` milliseconds, replacing the one before. 0: removes it.
   *
   * @throws BackendError
   */
  writeClient(record: ClientRecord, lifetime: number): Promise<void>;

  /**
   * The record of a client, as it was written; undefined: there is none. Times grow while a record is kept.
   *
   * @throws BackendError
   */
  client(clientId: string): Promise<ClientRecord | undefined>;

  /**
   * The records of all clients.
   *
   * @throws BackendError
   */
  clients(): Promise<readonly ClientRecord[]>;
}

/** A record that was written `age` milliseconds ago: what it says of waits and holds has gone on since. */
export function agedRecord(record: ClientRecord, age: number): ClientRecord {
  return {
    ...record,
    longestWait: record.waiting > 0 ? record.longestWait + age : 0,
    holds: record.holds.map((hold) => ({ ...hold, heldFor: hold.heldFor + age })),
    waits: record.waits.map((wait) => ({ ...wait, waitedFor: wait.waitedFor + age })),
  };
}
