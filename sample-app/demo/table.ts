const LABEL = 26;
const CELL = 15;

/** Lines of a table: a label, right-aligned cells, and a remark. */
export function table(
  rows: readonly (readonly [label: string, cells: readonly string[], remark?: string])[],
): string[] {
  return rows.map(([label, cells, remark]) =>
    [label.padEnd(LABEL), ...cells.map((cell) => cell.padStart(CELL)), remark ? `   ${remark}` : ''].join('').trimEnd(),
  );
}

/** The value that `share` of the sorted `values` do not exceed. */
export function percentile(values: readonly number[], share: number): number {
  return values[Math.max(0, Math.ceil(values.length * share) - 1)] ?? 0;
}

export function inMs(duration: number): string {
  return `${Math.round(duration)} ms`;
}

export function mark(good: boolean): string {
  return good ? '✓' : '✗';
}
