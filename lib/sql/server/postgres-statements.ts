/** Microseconds since 1970 of an expression of the type timestamptz. */
export const micros = (time: string) => `(extract(epoch from ${time}) * 1000000)::bigint`;

/** In a statement: its commit does not wait for the disk. Nothing stays in the session, which others may get. */
export const SOON = "set_config('synchronous_commit', 'off', true) AS soon";

/** The text of a statement that is on the disk when it is answered. It has no parameters: two statements travel. */
export const durably = (statement: string) => `SET LOCAL synchronous_commit = on; ${statement}`;

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
