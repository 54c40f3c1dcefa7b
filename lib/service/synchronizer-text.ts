import type { SynchronizerInspection } from './lock-inspection.js';

/** What is left of a semaphore or latch, in words: `7 of 10 taken`, `3 of 4 steps left`. */
export function synchronizerText({ type, count, total, taken }: SynchronizerInspection): string {
  if (type === 'counter') return `a number: ${count}`;
  if (type === 'count-down-latch')
    return total === undefined ? `${count} steps left` : `${count} of ${total} steps left`;
  return taken === undefined ? `${count} available` : `${taken} of ${total} taken`;
}
