import { printable } from './printable.js';

/** Rows with aligned columns below their titles. */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const lines = [titles, ...rows].map((cells) => cells.map(printable));
  const widths = titles.map((_, column) => lines.reduce((most, cells) => Math.max(most, width(cells[column])), 0));
  return lines.map((cells) =>
    cells
      .map((cell, column) => pad(cell, widths[column]))
      .join('  ')
      .trimEnd(),
  );
}

function pad(cell: string, to: number): string {
  return cell + ' '.repeat(to - width(cell));
}

function width(text: string): number {
  return [...text].length;
}
