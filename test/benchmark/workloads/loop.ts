import { floor } from '../contestants/floor.js';
import { inBackground } from '../contestants/this-library.js';
import { count, factor } from '../report/figures.js';
import { type Contest, play } from './contest.js';
import { fairness } from './fairness.js';
import { Standings } from './standings.js';
import type { Workload } from './workload.js';

const LEAST = 20;
const CONTEST = { connections: 1, callers: 1, keys: 'one', body: 0 } as const;

/** One caller that acquires the same lock again and again, and two processes that do so. */
export const loop: Workload = {
  name: 'loop',
  async run(bench) {
    const [duration, rounds] = bench.quick ? [300, 3] : [500, 9];
    const contend = async (contest: Contest, contestants = [inBackground]) =>
      new Standings(contest, await play(bench, contest, contestants), inBackground);
    const alone = await contend({ ...CONTEST, name: 'loop', processes: 1, duration, rounds }, [inBackground, floor]);
    const both = await contend({ ...CONTEST, name: 'loop of two', processes: 2, duration: 2_000, rounds: 3 });
    const ahead = alone.ratio('opsPerSecond', floor);
    const overlaps = alone.ours?.overlaps ?? Number.NaN;
    return {
      tables: [
        alone.table("loop: one caller, the same key again and again, release: 'background'"),
        both.table("loop of two: 2 processes × 1 caller, one key, release: 'background'"),
      ],
      bars: [
        { promise: `loop: throughput ≥ ${LEAST} × floor`, measured: factor(ahead), met: ahead >= LEAST },
        { promise: 'loop: no overlap', measured: count(overlaps), met: overlaps === 0 },
        ...fairness('loop of two', both, 100),
      ],
      panels: [alone.panel('One caller, the same key again and again')],
    };
  },
};
