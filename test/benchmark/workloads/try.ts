import { keyOf } from '../contestants/contestant.js';
import { floor } from '../contestants/floor.js';
import { thisLibrary } from '../contestants/this-library.js';
import { median, medianInterval } from '../measure/statistics.js';
import { factor, figure } from '../report/figures.js';
import { CREWS } from './contest.js';
import type { Bench, Workload } from './workload.js';

/** Callers that try at the same time, and how much longer than the floor they may take. */
const PARTS = [
  { callers: 1, most: 1.6 },
  { callers: 64, most: 1.1 },
] as const;

/** A try that finds the lock busy, in turns with a bare SET NX within one process. */
export const tries: Workload = {
  name: 'try',
  async run(bench) {
    const rounds = bench.quick ? 6 : 18;
    const results = [];
    for (const part of PARTS) results.push({ ...part, ...(await refuse(bench, part.callers, rounds)) });
    return {
      tables: [
        {
          title: 'try: tryAcquire() of a lock that somebody else holds, in turns with a bare SET NX within one process',
          columns: ['callers at a time', 'ours, µs', 'SET NX, µs', 'ours ÷ SET NX', '95 %'],
          rows: results.map(({ callers, ours, theirs, ratio, interval }) => [
            String(callers),
            figure(ours),
            figure(theirs),
            factor(ratio),
            interval === undefined ? '—' : `${figure(interval[0])} to ${figure(interval[1])}`,
          ]),
          notes: ['The time until all callers are refused. Both hear from Redis that the lock is busy.'],
        },
      ],
      bars: results.map(({ callers, most, ratio }) => ({
        promise: `try, ${callers} at a time: time until a busy lock is refused ≤ ${most} × SET NX, in turns within one process`,
        measured: factor(ratio),
        met: ratio <= most,
      })),
      panels: [],
    };
  },
};

/** The medians of the times in µs, and of our ratio to the floor. */
async function refuse(bench: Bench, callers: number, rounds: number) {
  const results: (readonly number[])[] = [];
  const turns = Math.ceil(250 / Math.sqrt(callers));
  for (let process = 1; process <= CREWS; process++) {
    bench.progress(`try: ${callers} at a time, process ${process} of ${CREWS}`);
    // One connection tries, the other one holds the lock.
    const crew = await bench.crew(thisLibrary, 1, 2);
    try {
      const refused = () => crew.run('refuse', floor.name, keyOf(thisLibrary, 'try'), callers, turns);
      for (let warmUp = 1; warmUp <= 4; warmUp++) await refused();
      for (let round = 1; round <= rounds / CREWS; round++) results.push(...(await refused()));
    } finally {
      crew.close();
    }
  }
  const ratios = results.map(([ours, theirs]) => ours / theirs);
  return {
    ours: median(results.map(([ours]) => ours)),
    theirs: median(results.map(([, theirs]) => theirs)),
    ratio: median(ratios),
    interval: medianInterval(ratios, 0.95),
  };
}
