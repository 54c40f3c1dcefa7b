import type { SqlConnection } from '../driver/sql-connection.js';

/** The largest value of a time-out, in milliseconds. */
const LONGEST_TIMEOUT = 2 ** 31 - 1;

/** Microseconds since 1970 of an expression of the type timestamptz. */
export const micros = (time: string) => `(extract(epoch from ${time}) * 1000000)::bigint`;

/** In a statement: its commit does not wait for the disk. Nothing stays in the session, which others may get. */
export const SOON = "set_config('synchronous_commit', 'off', true) AS soon";

/** The text of a statement that is on the disk when it is answered. It has no parameters: two statements travel. */
export const durably = (statement: string) => `SET LOCAL synchronous_commit = on; ${statement}`;

/** For a setting: whole milliseconds. */
export function toMilliseconds(duration: number): number {
  return Math.min(Math.ceil(duration), LONGEST_TIMEOUT);
}

/** Makes the row where it is missing. A crash may take it back. */
export async function insertMissing(control: SqlConnection, table: string, key: string): Promise<void> {
  const text = `WITH setting AS (SELECT ${SOON}) INSERT INTO ${table} (lock_name) SELECT $1::text FROM setting ON CONFLICT DO NOTHING`;
  await control.run(text, [key]);
}

/**
 * A string constant for a statement that is sent with others in one text, which can have no parameters. `E` makes
 * backslashes mean the same whatever `standard_conforming_strings` is.
 *
 * @throws an error with PostgreSQL's code for a name with a zero byte, at which the text of a statement ends
 */
export function toLiteral(text: string): string {
  if (text.includes('\0'))
    throw Object.assign(new Error('invalid byte sequence for encoding "UTF8": 0x00'), { code: '22021' });
  return `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}
