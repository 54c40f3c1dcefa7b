import { floor } from '../contestants/floor.js';
import { factor } from '../report/figures.js';
import { type Contest, play } from './contest.js';
import { Standings } from './standings.js';
import type { Workload } from './workload.js';

const MOST = 1.1;

export const seq: Workload = {
  name: 'seq',
  async run(bench) {
    const rounds = bench.quick ? 5 : 15;
    const shape = { processes: 1, connections: 1, callers: 1, keys: 'fresh', body: 0 } as const;
    const contest: Contest = { name: 'seq', ...shape, duration: 150, rounds };
    const standings = new Standings(contest, await play(bench, contest, bench.contestants));
    const latency = standings.ratio('p50', floor);
    return {
      tables: [standings.table('seq: one caller, a fresh key each time, acquire and release')],
      bars: [{ promise: `seq: latency (p50) ≤ ${MOST} × floor`, measured: factor(latency), met: latency <= MOST }],
      panels: [standings.panel('One caller, a fresh key each time')],
    };
  },
};
