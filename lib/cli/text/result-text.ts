import { sizeText } from '../../engine/terms/state-text.js';
import type { ListedResult, ResultInspection } from '../../service/lock-inspection.js';
import { durationText } from './duration-text.js';
import { table } from './table.js';

/** One line for each result of a single flight. */
export function resultTable(results: readonly ListedResult[]): string[] {
  const rows = results.map(({ name, size, remainingTime }) => [name, sizeText(size), durationText(remainingTime)]);
  return table(['RESULT OF', 'SIZE', 'KEPT FOR'], rows);
}

/** `result, 2.1 kB, kept for 43 s` */
export function resultText({ size, remainingTime }: ResultInspection): string {
  return `result, ${sizeText(size)}, kept for ${durationText(remainingTime)}`;
}
