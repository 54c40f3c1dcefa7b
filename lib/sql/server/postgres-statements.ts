/** Microseconds since 1970 of an expression of the type timestamptz. */
export const micros = (time: string) => `(extract(epoch from ${time}) * 1000000)::bigint`;

/** In a statement: its commit does not wait for the disk. Nothing stays in the session, which others may get. */
export const SOON = "set_config('synchronous_commit', 'off', true) AS soon";

/** The text of a statement that is on the disk when it is answered. It has no parameters: two statements travel. */
export const durably = (statement: string) => `SET LOCAL synchronous_commit = on; ${statement}`;
