import { createHash } from 'node:crypto';

/**
 * How long one statement waits for a lock, in milliseconds. In PostgreSQL it has a snapshot meanwhile, and VACUUM cleans
 * nothing that is younger.
 */
export const LONGEST_WAIT = 5_000;
/** How long its answer is awaited, in milliseconds. */
export const WAIT_ANSWER = LONGEST_WAIT + 5_000;

/**
 * What distinguishes the locks of one table from those of others, before the name of the lock. It says where it ends, so
 * that no two tables and names have one text.
 */
export function keySpace(...table: readonly unknown[]): string {
  return JSON.stringify(table);
}

/** The number of a lock: the first 64 bits of a SHA-256. */
export function numberOfKey(space: string, key: string): bigint {
  return createHash('sha256').update(space).update(key).digest().readBigInt64BE();
}

/** Why a table that has rows of row locks cannot be that of advisory locks. @param table a quoted name */
export function rowsAreThere(table: string): string {
  return `advisoryLocks(): there is a table ${table}, whose rows rowLocks() locks. The two kinds of locks do not exclude each other: give advisoryLocks() another table`;
}
