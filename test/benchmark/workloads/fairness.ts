import { count, figure } from '../report/figures.js';
import type { Standings } from './standings.js';
import type { Bar } from './workload.js';

/** How fairly several processes that want one lock are served. */
export function fairness(name: string, { ours }: Standings, mostWait: number): Bar[] {
  const { overlaps = Number.NaN, jainOfProcesses: jain = Number.NaN, longestWait: wait = Number.NaN } = ours ?? {};
  return [
    { promise: `${name}: no overlap across processes`, measured: count(overlaps), met: overlaps === 0 },
    { promise: `${name}: Jain index over processes ≥ 0.95`, measured: jain.toFixed(4), met: jain >= 0.95 },
    {
      promise: `${name}: no process waits over ${mostWait} ms while others are served`,
      measured: `${figure(wait)} ms`,
      met: wait <= mostWait,
    },
  ];
}
