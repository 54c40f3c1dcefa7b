import type { Bar, Table } from '../workloads/workload.js';

/** For a terminal. */
export function printed({ title, columns, rows, notes }: Table): string {
  const widths = columns.map((column, i) =>
    Math.max(...[column, ...rows.map((row) => row[i])].map((cell) => cell.length)),
  );
  const line = (cells: readonly string[]) =>
    cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join('  ');
  return [title, '', line(columns), ...rows.map(line), '', ...notes].join('\n');
}

export function printedBar({ promise, measured, met }: Bar): string {
  return `${met ? '✓' : '✗'} ${promise}: ${measured}`;
}

/** For GitHub. */
export function markdown({ title, columns, rows, notes }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const rule = columns.map((_, i) => (i === 0 ? '---' : '---:'));
  const [name, ...rest] = title.split(': ');
  return [
    `### ${name}`,
    '',
    `${capital(rest.join(': '))}.`,
    '',
    line(columns),
    line(rule),
    ...rows.map(line),
    '',
    ...notes,
  ].join('\n');
}

export function markdownBars(bars: readonly Bar[]): string {
  const rows = bars.map(({ promise, measured, met }) => `| ${promise} | ${measured} | ${met ? '✓' : '✗'} |`);
  return ['| promise | measured | |', '| --- | ---: | --- |', ...rows].join('\n');
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
