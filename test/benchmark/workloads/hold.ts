import { thisLibrary } from '../contestants/this-library.js';
import { count, factor, figure, percent } from '../report/figures.js';
import type { Bench, Workload } from './workload.js';

/** Milliseconds between two renewals of a lease: a third of the watchdog's lease of 30 s. */
const PERIOD = 10_000;

interface Hold {
  readonly leases: number;
  /** Shares of one core. */
  readonly clientCpu: number;
  readonly serverCpu: number;
  /** Milliseconds. */
  readonly loopDelay: number;
  /** Bytes per lease. */
  readonly heap: number;
}

export const hold: Workload = {
  name: 'hold',
  async run(bench) {
    const sizes = bench.quick ? [1_000, 10_000] : [1_000, 10_000, 100_000];
    const results: Hold[] = [];
    for (const leases of sizes) results.push(await keep(bench, leases));
    const rows = results.map(({ leases, clientCpu, serverCpu, loopDelay, heap }) => [
      count(leases),
      percent(clientCpu),
      percent(serverCpu),
      `${figure((clientCpu * PERIOD * 1e3) / leases)} µs`,
      `${figure(loopDelay)} ms`,
      `${count(heap)} B`,
    ]);
    const [first] = results;
    const last = results[results.length - 1];
    const growth = last.clientCpu / first.clientCpu / (last.leases / first.leases);
    const name = `hold ${count(last.leases)}`;
    return {
      tables: [
        {
          title: 'hold: leases that the watchdog keeps, for one period of 10 s in which each is renewed once',
          columns: ['leases', 'client CPU', 'server CPU', 'client CPU a renewal', 'loop delay p99', 'heap a lease'],
          rows,
          notes: ['The loop delay is that of another such period, because watching costs CPU time too.'],
        },
      ],
      bars: [
        {
          promise: `${name}: renewal ≤ 5 % of one core`,
          measured: percent(last.clientCpu),
          met: last.clientCpu <= 0.05,
        },
        {
          promise: `${name}: event-loop delay p99 ≤ 10 ms`,
          measured: `${figure(last.loopDelay)} ms`,
          met: last.loopDelay <= 10,
        },
        { promise: `${name}: ≤ 1 KB of heap a lease`, measured: `${count(last.heap)} B`, met: last.heap <= 1_024 },
        {
          promise: `${name}: grows at most linearly from ${count(first.leases)}`,
          measured: `${factor(growth)} of linear`,
          met: growth <= 1.1,
        },
      ],
      panels: [],
    };
  },
};

async function keep(bench: Bench, leases: number): Promise<Hold> {
  bench.progress(`hold: ${count(leases)} leases`);
  const crew = await bench.crew(thisLibrary, 1, 1);
  try {
    const [{ heap }] = await crew.run('take', 'hold', leases);
    const { result, load } = await bench.meter.during(() => crew.run('keep', PERIOD));
    const [{ cpu, elapsed, loopDelay }] = result;
    const lasted = 2 * PERIOD; // one period with the event loop observed, and one without
    return { leases, heap, loopDelay, clientCpu: cpu / 1e3 / elapsed, serverCpu: load.cpu / 1e3 / lasted };
  } finally {
    crew.close();
  }
}
