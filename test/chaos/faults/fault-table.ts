/** One line of the table in docs/reliability.md. */
export interface FaultRow {
  readonly fault: string;
  readonly sees: string;
  readonly measured: string;
}

const rows: FaultRow[] = [];

/** Records the effect of a fault on users. {@link printFaultTable} prints it. */
export function fault(fault: string, sees: string, measured: string): void {
  rows.push({ fault, sees, measured });
}

/** Called at the end of a test file. It bypasses jest's console, which would frame every line. */
export function printFaultTable(): void {
  const lines = rows.splice(0).map((row) => `| ${row.fault} | ${row.sees} | ${row.measured} |\n`);
  process.stdout.write(lines.join(''));
}

export function ms(time: number): string {
  return time < 1_000 ? `${Math.round(time)} ms` : `${(time / 1_000).toFixed(1)} s`;
}
