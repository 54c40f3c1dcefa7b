import { floor } from '../contestants/floor.js';
import { factor } from '../report/figures.js';
import { type Contest, play } from './contest.js';
import { Standings } from './standings.js';
import type { Bar, Bench, Outcome, Workload } from './workload.js';

const MOST_CPU = 0.4;

export const par: Workload = {
  name: 'par',
  async run(bench) {
    const parts = [await inFlight(bench, 64, 2), await inFlight(bench, 256, 2.5)];
    return {
      tables: parts.flatMap(({ tables }) => tables),
      bars: parts.flatMap(({ bars }) => bars),
      panels: parts.flatMap(({ panels }) => panels),
    };
  },
};

async function inFlight(bench: Bench, callers: number, least: number): Promise<Outcome> {
  const rounds = bench.quick ? 9 : 27;
  const shape = { processes: 1, connections: 1, keys: 'fresh', body: 0 } as const;
  const contest: Contest = { name: `par ${callers}`, ...shape, callers, duration: 100, rounds };
  const standings = new Standings(contest, await play(bench, contest, bench.contestants));
  const throughput = standings.ratio('opsPerSecond', floor);
  const cpu = standings.ratio('clientCpu', floor);
  const bars: Bar[] = [
    {
      promise: `par ${callers}: throughput ≥ ${least} × floor`,
      measured: factor(throughput),
      met: throughput >= least,
    },
    {
      promise: `par ${callers}: client CPU per operation ≤ ${MOST_CPU} × floor`,
      measured: factor(cpu),
      met: cpu <= MOST_CPU,
    },
  ];
  return {
    tables: [standings.table(`par ${callers}: ${callers} callers of one process, a fresh key each time`)],
    bars,
    panels: [standings.panel(`${callers} callers, a fresh key each time`)],
  };
}
