import type { Receipt } from '../orders/receipt.js';

const COLUMNS = 64;

/** How many milliseconds one column must stand for, so that all these orders fit. */
export function columnOf(receipts: readonly Receipt[]): number {
  const start = Math.min(...receipts.map(({ startedAt }) => startedAt));
  const end = Math.max(...receipts.map(({ endedAt }) => endedAt));
  return receipts.length === 0 ? 1 : Math.max(1, Math.ceil((end - start) / COLUMNS));
}

/**
 * A line for each replica: how many orders it worked on in the middle of each column. It shows a moment, not a span, so
 * that a lock that changes hands within a column does not look like one with two holders.
 */
export function timeline(receipts: readonly Receipt[], replicas: readonly string[], column: number): string[] {
  const start = Math.min(...receipts.map(({ startedAt }) => startedAt));
  return replicas.map((name) => {
    const own = receipts.filter(({ replica }) => replica === name);
    const cells = Array.from({ length: COLUMNS }, (_, i) => {
      const moment = start + (i + 0.5) * column;
      return cell(own.filter(({ startedAt, endedAt }) => startedAt <= moment && moment < endedAt).length);
    });
    return `${name}  ${cells.join('').trimEnd()}`;
  });
}

function cell(orders: number): string {
  return orders === 0 ? ' ' : orders === 1 ? '█' : orders < 10 ? String(orders) : '#';
}
