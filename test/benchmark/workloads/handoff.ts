import { setTimeout as delay } from 'node:timers/promises';
import { redisson } from '../contestants/redisson.js';
import { median } from '../measure/statistics.js';
import { count, factor, figure } from '../report/figures.js';
import { type Contest, play } from './contest.js';
import { Standings } from './standings.js';
import { contenders, type Workload } from './workload.js';

const CONNECTIONS = 8;
const CALLERS = 5;
const BODY = 5;

export const handoff: Workload = {
  name: 'handoff',
  async run(bench) {
    const rounds = bench.quick ? 3 : 7;
    const bare = await runBare(rounds);
    const shape = { processes: 1, connections: CONNECTIONS, callers: CALLERS, keys: 'one', body: BODY } as const;
    const contest: Contest = { name: 'handoff', ...shape, duration: 'once', rounds };
    const contestants = contenders(bench).filter((contestant) => contestant !== redisson);
    const standings = new Standings(contest, await play(bench, contest, contestants));
    const { elapsed = Number.NaN, executed = Number.NaN, outOfOrder = Number.NaN } = standings.ours ?? {};
    const bodies = CONNECTIONS * CALLERS;
    const title = `handoff: ${CONNECTIONS} connections × ${CALLERS} callers, one key, a body of ${BODY} ms, once each`;
    return {
      tables: [
        standings.table(title, [`The same ${bodies} bodies run bare, one after another, take ${figure(bare)} ms.`]),
      ],
      bars: [
        {
          promise: 'handoff: total ≤ 1.06 × bare',
          measured: `${factor(elapsed / bare)} (${figure(elapsed)} ms)`,
          met: elapsed <= 1.06 * bare,
        },
        {
          promise: 'handoff: ≤ 5 Redis commands per body, those in scripts included',
          measured: figure(executed),
          met: executed <= 5,
        },
        {
          promise: 'handoff: arrival order kept within each connection',
          measured: `${count(outOfOrder)} out of order`,
          met: outOfOrder === 0,
        },
      ],
      panels: [],
    };
  },
};

/** Milliseconds that the bodies take without any lock. */
async function runBare(rounds: number): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    for (let body = 0; body < CONNECTIONS * CALLERS; body++) await delay(BODY);
    times.push(performance.now() - start);
  }
  return median(times);
}
