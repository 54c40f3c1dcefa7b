import type { SynchronizerType } from '../../backends/synchronizer-state.js';

interface Counts {
  readonly type: SynchronizerType;
  readonly count: number;
  readonly total?: number;
  readonly taken?: number;
}

/** The state of a semaphore or latch in words: `7 of 10 taken`, `3 of 4 steps left`. */
export function synchronizerText({ type, count, total, taken }: Counts): string {
  if (type === 'counter') return `a number: ${count}`;
  if (type === 'count-down-latch')
    return total === undefined ? `${count} steps left` : `${count} of ${total} steps left`;
  return taken === undefined ? `${count} available` : `${taken} of ${total} taken`;
}

/** The size of a result: `0 B`, `850 B`, `2.1 kB`, `1.0 MB`. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  return bytes < 999_950 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
