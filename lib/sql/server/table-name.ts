/** Quoted names, ready for statements. */
export interface TableNames {
  readonly rows: string;
  readonly state: string;
  readonly clients: string;
  /** Only PostgreSQL has this table and the next one. */
  readonly epoch: string;
  readonly floor: string;
}

/** The quoted names of the tables. @param table a checked name, optionally with a schema */
export function quoteTable(table: string, quote: '"' | '`'): TableNames {
  const quoted = (name: string) =>
    name
      .split('.')
      .map((part) => `${quote}${part}${quote}`)
      .join('.');
  const beside = (what: string) => quoted(`${table}_${what}`);
  return {
    rows: quoted(table),
    state: beside('state'),
    clients: beside('client'),
    epoch: beside('epoch'),
    floor: beside('floor'),
  };
}

/** Why a table name from the user's options cannot be used. `undefined`: it can. */
export function tableProblem(table: unknown): string | undefined {
  if (typeof table === 'string' && /^[A-Za-z_]\w{0,55}(\.[A-Za-z_]\w{0,55})?$/.test(table)) return undefined;
  return "table must be a name, or schema.name, of letters, digits and '_'";
}
