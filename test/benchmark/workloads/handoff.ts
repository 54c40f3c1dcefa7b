import { bare } from '../contestants/bare.js';
import { redisson } from '../contestants/redisson.js';
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
    const rounds = bench.quick ? 3 : 15;
    const shape = { processes: 1, connections: CONNECTIONS, callers: CALLERS, keys: 'one', body: BODY } as const;
    const contest: Contest = { name: 'handoff', ...shape, duration: 'once', rounds };
    const contestants = contenders(bench).filter((contestant) => contestant !== redisson);
    const standings = new Standings(contest, await play(bench, contest, [...contestants, bare]));
    const added = standings.ratio('elapsed', bare);
    const { elapsed = Number.NaN, executed = Number.NaN, outOfOrder = Number.NaN } = standings.ours ?? {};
    const bodies = CONNECTIONS * CALLERS;
    const title = `handoff: ${CONNECTIONS} connections × ${CALLERS} callers, one key, a body of ${BODY} ms, once each`;
    return {
      tables: [
        standings.table(title, [
          `The same ${bodies} bodies run bare, one after another, took ${figure(standings.of(bare)?.elapsed ?? Number.NaN)} ms.`,
        ]),
      ],
      bars: [
        {
          promise: 'handoff: total ≤ 1.06 × bare',
          measured: `${factor(added)} (${figure(elapsed)} ms)`,
          met: added <= 1.06,
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
