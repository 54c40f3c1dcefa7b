/** The quoted names of the two tables. @param table a checked name, perhaps with a schema before it */
export function quoteTable(table: string, quote: '"' | '`'): readonly [rows: string, state: string] {
  const quoted = (name: string) =>
    name
      .split('.')
      .map((part) => `${quote}${part}${quote}`)
      .join('.');
  return [quoted(table), quoted(`${table}_state`)];
}
