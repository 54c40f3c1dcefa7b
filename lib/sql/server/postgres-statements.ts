import type { SqlConnection } from '../driver/sql-connection.js';

/** The largest value of a time-out, in milliseconds. */
const LONGEST_TIMEOUT = 2 ** 31 - 1;

/** Microseconds since 1970 of an expression of the type timestamptz. */
export const micros = (time: string) => `(extract(epoch from ${time}) * 1000000)::bigint`;

/** A part of a statement whose commit does not wait for the disk. The setting does not outlast the transaction. */
export const SOON = "set_config('synchronous_commit', 'off', true) AS soon";

/**
 * A statement whose change is on the disk when it is answered. It is sent with another one, so it has no parameters.
 */
export const durably = (statement: string) => `SET LOCAL synchronous_commit = on; ${statement}`;

/** The value of a setting in whole milliseconds. */
export function toMilliseconds(duration: number): number {
  return Math.min(Math.ceil(duration), LONGEST_TIMEOUT);
}

/** Creates the row if it is missing. A crash may undo this. */
export async function insertMissing(control: SqlConnection, table: string, key: string): Promise<void> {
  const text = `WITH setting AS (SELECT ${SOON}) INSERT INTO ${table} (lock_name) SELECT $1::text FROM setting ON CONFLICT DO NOTHING`;
  await control.run(text, [key]);
}

/**
 * A string constant for a statement that is sent together with others and so can have no parameters. `E` gives
 * backslashes the same meaning for every value of `standard_conforming_strings`.
 *
 * @throws an error with PostgreSQL's code if the name contains a zero byte, which would end the text of the statement
 */
export function toLiteral(text: string): string {
  if (text.includes('\0'))
    throw Object.assign(new Error('invalid byte sequence for encoding "UTF8": 0x00'), { code: '22021' });
  return `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}
