import { createHash } from 'node:crypto';

/**
 * How long one statement waits for a lock, in milliseconds. In PostgreSQL, the statement has a snapshot while it waits,
 * and VACUUM cannot remove rows that died after the snapshot.
 */
export const LONGEST_WAIT = 5_000;
/** How long to wait for its answer, in milliseconds. */
export const WAIT_ANSWER = LONGEST_WAIT + 5_000;

/**
 * The prefix of a lock's name that distinguishes the locks of one table from those of others. It shows where it ends,
 * so that different tables and names never result in the same text.
 */
export function keySpace(...table: readonly unknown[]): string {
  return JSON.stringify(table);
}

/** The number of a lock: the first 64 bits of a SHA-256. */
export function numberOfKey(space: string, key: string): bigint {
  return createHash('sha256').update(space).update(key).digest().readBigInt64BE();
}

/** Why a table with the rows of row locks cannot be used for advisory locks. @param table a quoted name */
export function rowsAreThere(table: string): string {
  return `advisoryLocks(): there is a table ${table}, whose rows rowLocks() locks. The two kinds of locks do not exclude each other: give advisoryLocks() another table`;
}
