import { thisLibrary } from '../contestants/this-library.js';
import { median } from '../measure/statistics.js';
import { figure } from '../report/figures.js';
import type { Called } from '../worker/decorated-calls.js';
import type { Workload } from './workload.js';

const MOST = 5;

export const decorator: Workload = {
  name: 'decorator',
  async run(bench) {
    const [calls, rounds] = bench.quick ? [30_000, 3] : [100_000, 9];
    const crew = await bench.crew(thisLibrary, 1, 0);
    const bare: Called[] = [];
    const locked: Called[] = [];
    try {
      for (let round = 0; round <= rounds; round++) {
        bench.progress(`decorator: round ${round} of ${rounds}`);
        bare.push(...(await crew.run('call', 'bare', calls)));
        locked.push(...(await crew.run('call', 'locked', calls)));
      }
    } finally {
      crew.close();
    }
    // The first round warms up.
    const typical = (all: readonly Called[], field: keyof Called) =>
      median(all.slice(1).map((called) => called[field]));
    const added = typical(locked, 'time') - typical(bare, 'time');
    const row = (name: string, all: readonly Called[]) => [
      name,
      figure(typical(all, 'time')),
      figure(typical(all, 'cpu')),
    ];
    return {
      tables: [
        {
          title:
            "decorator: a method that does nothing, under @DistributedLock('order:#<args[0]>') on the memory backend",
          columns: ['', 'µs a call', 'CPU µs a call'],
          rows: [row('bare', bare), row('decorated', locked)],
          notes: [],
        },
      ],
      bars: [
        { promise: `decorator: adds ≤ ${MOST} µs to a call`, measured: `${figure(added)} µs`, met: added <= MOST },
      ],
      panels: [],
    };
  },
};
