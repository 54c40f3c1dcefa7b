/** Quoted names, ready for statements. */
export interface TableNames {
  readonly rows: string;
  readonly state: string;
  readonly clients: string;
}

/** The quoted names of the three tables. @param table a checked name, perhaps with a schema before it */
export function quoteTable(table: string, quote: '"' | '`'): TableNames {
  const quoted = (name: string) =>
    name
      .split('.')
      .map((part) => `${quote}${part}${quote}`)
      .join('.');
  return { rows: quoted(table), state: quoted(`${table}_state`), clients: quoted(`${table}_client`) };
}

/** Why a table name from the user's options cannot be used; undefined: it can. */
export function tableProblem(table: unknown): string | undefined {
  if (typeof table === 'string' && /^[A-Za-z_]\w{0,55}(\.[A-Za-z_]\w{0,55})?$/.test(table)) return undefined;
  return "table must be a name, or schema.name, of letters, digits and '_'";
}
