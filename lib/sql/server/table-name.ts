/** The quoted names of the two tables. @param table a checked name, perhaps with a schema before it */
export function quoteTable(table: string, quote: '"' | '`'): readonly [rows: string, state: string] {
  const quoted = (name: string) =>
    name
      .split('.')
      .map((part) => `${quote}${part}${quote}`)
      .join('.');
  return [quoted(table), quoted(`${table}_state`)];
}

/** What is wrong with the name of a table that a user has given, if anything is. */
export function tableProblem(table: unknown): string | undefined {
  if (typeof table === 'string' && /^[A-Za-z_]\w{0,55}(\.[A-Za-z_]\w{0,55})?$/.test(table)) return undefined;
  return "table must be a name, or schema.name, of letters, digits and '_'";
}
