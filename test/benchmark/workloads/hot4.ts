import { redisson } from '../contestants/redisson.js';
import { thisLibrary } from '../contestants/this-library.js';
import { factor } from '../report/figures.js';
import { type Contest, play } from './contest.js';
import { fairness } from './fairness.js';
import { Standings } from './standings.js';
import { contenders, type Workload } from './workload.js';

const CONTEST = { connections: 1, keys: 'one', body: 0, callers: 25 } as const;

export const hot4: Workload = {
  name: 'hot4',
  async run(bench) {
    const [duration, rounds] = bench.quick ? [1_000, 1] : [1_500, 3];
    const peers = contenders(bench).filter((contestant) => contestant !== redisson);
    const contend = async (contest: Contest, contestants = peers) =>
      new Standings(contest, await play(bench, contest, contestants));
    const crowds = await contend({ ...CONTEST, name: 'hot4', processes: 4, duration, rounds });
    const singles = await contend({
      ...CONTEST,
      name: 'hot4 of single callers',
      processes: 4,
      callers: 1,
      body: 2,
      duration,
      rounds: 1,
    });
    const eight = await contend({ ...CONTEST, name: 'hot8', processes: 8, duration, rounds }, [thisLibrary]);
    const ahead = crowds.ratio('opsPerSecond', crowds.bestPeer);
    return {
      tables: [
        crowds.table('hot4: 4 processes × 25 callers, one key, empty body'),
        singles.table('hot4 of single callers: 4 processes × 1 caller, one key, a body of 2 ms'),
        eight.table('hot8: 8 processes × 25 callers, one key, empty body'),
      ],
      bars: [
        { promise: 'hot4: throughput ≥ 50 × the best peer', measured: factor(ahead), met: ahead >= 50 },
        ...fairness('hot4', crowds, 100),
        ...fairness('hot4 of single callers', singles, 100),
        ...fairness('hot8', eight, 200),
      ],
      panels: [crowds.panel('4 processes × 25 callers, one key')],
    };
  },
};
