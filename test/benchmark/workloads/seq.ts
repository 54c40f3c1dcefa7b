import { type Contestant, keyOf } from '../contestants/contestant.js';
import { floor } from '../contestants/floor.js';
import { inBackground, thisLibrary } from '../contestants/this-library.js';
import { median } from '../measure/statistics.js';
import { factor, figure } from '../report/figures.js';
import { type Contest, CREWS, play } from './contest.js';
import { Standings } from './standings.js';
import type { Bench, Workload } from './workload.js';

const MOST = 1.1;
/** For calls that do not wait for their releases. */
const MOST_IN_BACKGROUND = 1;
/** How many more operations it makes, until the last release is answered. */
const LEAST_GAIN = 1.2;

export const seq: Workload = {
  name: 'seq',
  async run(bench) {
    const rounds = bench.quick ? 5 : 15;
    const shape = { processes: 1, connections: 1, callers: 1, keys: 'fresh', body: 0 } as const;
    const contest: Contest = { name: 'seq', ...shape, duration: 150, rounds };
    const played = await play(bench, contest, [...bench.contestants, inBackground]);
    const standings = new Standings(contest, played);
    const gain = new Standings(contest, played, inBackground).ratio('opsPerSecond', thisLibrary);
    const { ours, theirs, ratio } = await duels(bench, rounds, thisLibrary);
    const background = await duels(bench, rounds, inBackground);
    return {
      tables: [
        standings.table('seq: one caller, a fresh key each time, acquire and release', [
          `Where the processes run changes a latency by up to a factor of three, from round to round. So the promise is measured by taking turns within one process, four operations each: ${figure(ours)} µs, and the floor ${figure(theirs)} µs.`,
        ]),
      ],
      bars: [
        {
          promise: `seq: latency (p50) ≤ ${MOST} × floor, in turns within one process`,
          measured: factor(ratio),
          met: ratio <= MOST,
        },
        {
          promise: `seq, release: 'background': latency (p50) ≤ ${MOST_IN_BACKGROUND} × floor, in turns within one process`,
          measured: factor(background.ratio),
          met: background.ratio <= MOST_IN_BACKGROUND,
        },
        {
          promise: `seq, release: 'background': throughput until the last release is answered ≥ ${LEAST_GAIN} × confirmed`,
          measured: factor(gain),
          met: gain >= LEAST_GAIN,
        },
      ],
      panels: [standings.panel('One caller, a fresh key each time')],
    };
  },
};

/** The medians of the latencies in µs, and of our ratio to the floor. */
async function duels(bench: Bench, rounds: number, contestant: Contestant) {
  const results: (readonly number[])[] = [];
  for (let process = 1; process <= CREWS; process++) {
    bench.progress(`seq: in turns with the floor, process ${process} of ${CREWS}`);
    const crew = await bench.crew(contestant, 1, 1);
    try {
      const duel = () => crew.run('duel', floor.name, keyOf(contestant, 'duel'), 250);
      for (let warmUp = 1; warmUp <= 4; warmUp++) await duel();
      for (let round = 1; round <= rounds / CREWS; round++) results.push(...(await duel()));
    } finally {
      crew.close();
    }
  }
  return {
    ours: median(results.map(([ours]) => ours)),
    theirs: median(results.map(([, theirs]) => theirs)),
    ratio: median(results.map(([ours, theirs]) => ours / theirs)),
  };
}
