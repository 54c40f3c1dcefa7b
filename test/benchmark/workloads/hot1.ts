import { count, factor, figure } from '../report/figures.js';
import { type Contest, play } from './contest.js';
import { Standings } from './standings.js';
import { contenders, type Workload } from './workload.js';

export const hot1: Workload = {
  name: 'hot1',
  async run(bench) {
    const [duration, rounds] = bench.quick ? [500, 2] : [1_000, 3];
    const shape = { processes: 1, connections: 1, callers: 100, keys: 'one', body: 0 } as const;
    const contest: Contest = { name: 'hot1', ...shape, duration, rounds };
    const standings = new Standings(contest, await play(bench, contest, contenders(bench)));
    const { ours, bestPeer } = standings;
    const ahead = standings.ratio('opsPerSecond', bestPeer);
    const { overlaps = Number.NaN, jainOfCallers = Number.NaN, loopDelay = Number.NaN } = ours ?? {};
    return {
      tables: [standings.table('hot1: 100 callers of one process, one key, empty body')],
      bars: [
        { promise: 'hot1: throughput ≥ 100 × the best peer', measured: factor(ahead), met: ahead >= 100 },
        { promise: 'hot1: no overlap', measured: count(overlaps), met: overlaps === 0 },
        {
          promise: 'hot1: Jain index over callers ≥ 0.99',
          measured: jainOfCallers.toFixed(4),
          met: jainOfCallers >= 0.99,
        },
        { promise: 'hot1: event-loop delay p99 ≤ 5 ms', measured: `${figure(loopDelay)} ms`, met: loopDelay <= 5 },
      ],
      panels: [standings.panel('100 callers of one process, one key')],
    };
  },
};
