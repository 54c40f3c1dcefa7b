import type { HeldType } from './lock-requests.js';

/**
 * The record that a client writes about itself: its identity, its locks and its waits. Times are in milliseconds.
 *
 * @publicApi
 */
export interface ClientRecord {
  /** The owners of its locks are `<clientId>:<n>`. */
  readonly clientId: string;
  readonly application: string;
  readonly host: string;
  readonly pid: number;
  /** The application's version; `''`: not known. */
  readonly version: string;
  /** When the client was created, in milliseconds since 1970, by the clock of its host. */
  readonly since: number;
  /** The number of locks that the client holds, and of permits that it renews. */
  readonly held: number;
  /** The number of its callers that wait for a lock. */
  readonly waiting: number;
  /** How long its longest-waiting caller has waited; 0 when none waits. */
  readonly longestWait: number;
  /**
   * For how long its event loop has been blocked. Only a client with `keepWhileBlocked` that holds something says so. Left
   * out: it is not blocked, as far as is known.
   */
  readonly blockedFor?: number;
  /** Up to 20 locks that the client holds, the oldest first. */
  readonly holds: readonly HoldRecord[];
  /** Up to 20 locks that the client waits for, the longest wait first. */
  readonly waits: readonly WaitRecord[];
}

/** A lock that a client holds. @publicApi */
export interface HoldRecord {
  readonly key: string;
  readonly type: HeldType;
  readonly owner: string;
  /** The decorator's template, `Class.method` if the key is a function, or the option `group`; `''`: none was given. */
  readonly group: string;
  /** `Class.method` of a decorated method; `''` for other callers. */
  readonly method: string;
  readonly heldFor: number;
}

/** A lock that callers of one client wait for. @publicApi */
export interface WaitRecord {
  readonly key: string;
  readonly type: HeldType;
  /** The group of the first caller, as in {@link HoldRecord}. */
  readonly group: string;
  readonly method: string;
  /** The number of the client's callers that wait. */
  readonly waiters: number;
  /** How long the first caller has waited. */
  readonly waitedFor: number;
}

/** @publicApi */
export interface KeyPage {
  /**
   * Keys of locks, in no particular order. A key that exists during the whole listing is on at least one page. A key
   * may be on two pages.
   */
  readonly keys: readonly string[];
  /**
   * Keys of semaphores and latches, if the backend can find them: those that this library created, and others after a
   * caller has found too few permits in them.
   */
  readonly synchronizers?: readonly string[];
  /** Keys of single flights whose results are stored, if the backend can find them. */
  readonly results?: readonly string[];
  /** The cursor of the next page; undefined: this is the last one. */
  readonly cursor: string | undefined;
}

/**
 * Lists locks and clients, for people and tools that inspect them. An acquisition never uses it.
 *
 * @publicApi
 */
export interface LockDirectory {
  /**
   * The keys of existing locks, semaphores and latches that begin with exactly `prefix`, followed by text that matches
   * the glob pattern `match`. It does not block the server, however many keys there are.
   *
   * @param count the approximate size of a page; a page may have more or fewer keys, or none
   * @returns undefined for a cursor that this backend did not issue
   * @throws BackendError
   */
  list(prefix: string, match: string, cursor: string | undefined, count: number): Promise<KeyPage | undefined>;

  /**
   * Replaces the record of a client and keeps it for `lifetime` milliseconds. A lifetime of 0 removes the record.
   *
   * @throws BackendError
   */
  writeClient(record: ClientRecord, lifetime: number): Promise<void>;

  /**
   * The record of a client, with its durations extended to the present; undefined: there is none.
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

/**
 * Brings a record that was written `age` milliseconds ago up to date, by adding that time to its waits and holds.
 *
 * @publicApi
 */
export function agedRecord(record: ClientRecord, age: number): ClientRecord {
  return {
    ...record,
    longestWait: record.waiting > 0 ? record.longestWait + age : 0,
    holds: record.holds.map((hold) => ({ ...hold, heldFor: hold.heldFor + age })),
    waits: record.waits.map((wait) => ({ ...wait, waitedFor: wait.waitedFor + age })),
  };
}
