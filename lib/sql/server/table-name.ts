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

/** What is wrong with the name of a table that a user has given, if anything is. */
export function tableProblem(table: unknown): string | undefined {
  if (typeof table === 'string' && /^[A-Za-z_]\w{0,55}(\.[A-Za-z_]\w{0,55})?$/.test(table)) return undefined;
  return "table must be a name, or schema.name, of letters, digits and '_'";
}
