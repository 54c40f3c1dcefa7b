// npm run bench -- pairs                        this library and the fixed base commit, in turns
// npm run bench -- pairs --base <git ref>    this library and the one of another commit, in turns
// npm run bench -- pairs --base ioredis      this library by node-redis and by ioredis, in turns
//   --pairs 10                        how many; each has its own process for either side
//   --workloads seq,par,hot1          default: all of them, see shapes.ts
// This library is the working tree, with changes that are not committed. The base is always a commit.
// AsyncLocalStorage is on in both, as in an application; BENCH_SCOPES=off leaves it to the libraries.
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { startRedis } from '../../support/servers/redis-server.js';
import type { Contestant } from '../contestants/contestant.js';
import type { Crew } from '../crew/crew.js';
import { startNodeCrew } from '../crew/node-crew.js';
import { ServerMeter } from '../measure/server-meter.js';
import { median, medianInterval } from '../measure/statistics.js';
import { watchStolenTime } from '../measure/stolen-time.js';
import { figure, percent } from '../report/figures.js';
import { printed } from '../report/table.js';
import { leadIn, playRound, type Round, start } from '../workloads/contest.js';
import type { Bench } from '../workloads/workload.js';
import { buildBase } from './build-base.js';
import { libraryAt } from './library-at.js';
import { SHAPES, type Shape } from './shapes.js';

/** Milliseconds. Less than in the benchmark itself, because each pair spends it twice. */
const WARM_UP = 1_000;

/** Steps that each show no difference may add up, so the base stays the same. */
const FIXED_BASE = '1f79783';

const COLUMNS = [
  'workload',
  'base op/s',
  'here op/s',
  'ratio',
  'in pairs',
  '95 %',
  'base µs CPU/op',
  'here',
  'in pairs',
  '95 %',
];

const NOTES = [
  'ratio: of the medians. in pairs: the median of the ratios within the pairs; 95 %: its interval by the sign test, from order statistics',
  '(W. J. Conover, Practical Nonparametric Statistics, 3rd edition, 3.2), which takes six pairs. CPU time: of the clients.',
  'cold: the first second of a process.',
];

const { values: flags } = parseArgs({
  options: {
    base: { type: 'string', default: FIXED_BASE },
    pairs: { type: 'string', default: '10' },
    workloads: { type: 'string', default: Object.keys(SHAPES).join(',') },
  },
});
const names = flags.workloads.split(',');
const unknown = names.filter((name) => !(name in SHAPES));
if (!(Number(flags.pairs) > 0) || unknown.length > 0) {
  console.error(
    `Usage: npm run bench -- pairs [--base <git ref>|ioredis] [--pairs 10] [--workloads ${Object.keys(SHAPES)}]`,
  );
  process.exit(1);
}

/** The results of both sides in one pair. */
interface Pair {
  readonly base: readonly Round[];
  readonly here: readonly Round[];
}

const byNodeRedis = flags.base === 'ioredis';
const base = byNodeRedis ? { folder: `${process.cwd()}/dist`, remove: () => {} } : buildBase(flags.base);
const server = await startRedis();
const stolenSince = watchStolenTime();
try {
  const worker = new URL('./pair-worker.js', import.meta.url);
  const redis = server.client();
  const bench: Bench = {
    meter: new ServerMeter(redis),
    contestants: [],
    quick: true,
    crew: (contestant, size, connections) => startNodeCrew(contestant, server.port, size, connections, worker),
    progress,
  };
  const rows: string[][] = [];
  for (const shape of names.flatMap((name) => SHAPES[name])) {
    const sides = {
      base: libraryAt(base.folder, shape.way),
      here: libraryAt(`${process.cwd()}/dist`, shape.way, byNodeRedis ? 'node-redis' : 'ioredis'),
    };
    const pairs: Pair[] = [];
    for (let pair = 1; pair <= Number(flags.pairs); pair++) {
      progress(`${shape.name}: pair ${pair} of ${flags.pairs}`);
      pairs.push(await playPair(bench, shape, sides, pair % 2 === 0));
    }
    rows.push(rowOf(shape, pairs));
    await redis.flushall();
  }
  progress('');
  const title = `Here${byNodeRedis ? ', by node-redis,' : ''} against ${flags.base}, ${flags.pairs} pairs. Above 1: more operations, or more CPU time`;
  console.log(printed({ title, columns: COLUMNS, rows, notes: NOTES }));
  const [load] = loadavg();
  console.log(
    `Load average: ${figure(load)} on ${availableParallelism()} cores; the benchmark itself keeps two of them busy`,
  );
  console.log(`CPU time that the machine's host gave to others meanwhile: ${percent(stolenSince())}`);
} finally {
  await server.stop();
  base.remove();
}

/**
 * The order is base, here, here, base, and so on, and reversed in every other pair. The side that is not measured is
 * suspended.
 */
async function playPair(
  bench: Bench,
  shape: Shape,
  { base, here }: { readonly base: Contestant; readonly here: Contestant },
  reverse: boolean,
): Promise<Pair> {
  const order = reverse ? [here, base] : [base, here];
  const rounds = new Map<Contestant, Round[]>([
    [base, []],
    [here, []],
  ]);
  const crews = new Map<Contestant, Crew>();
  const { cold = false } = shape;
  try {
    for (const side of turns(order, shape.rounds)) {
      const crew =
        crews.get(side) ??
        (cold ? await bench.crew(side, shape.processes, shape.connections) : await start(bench, shape, side, WARM_UP));
      crews.set(side, crew);
      crew.resume();
      const key = `${shape.name}:${crews.size}:${rounds.get(side)?.length}:${Math.random()}`;
      if (!cold) await leadIn(shape, crew, `${key}:lead-in`);
      rounds.get(side)?.push(await playRound(bench, shape, crew, key));
      crew.suspend();
    }
  } finally {
    for (const crew of crews.values()) crew.close();
  }
  return { base: rounds.get(base)!, here: rounds.get(here)! };
}

/** Short rounds that alternate quickly, so that whatever else the machine does affects both sides alike. */
function turns(order: readonly Contestant[], rounds: number): Contestant[] {
  return Array.from({ length: rounds }, (_, round) => (round % 2 === 0 ? order : [...order].reverse())).flat();
}

function rowOf({ name }: Shape, pairs: readonly Pair[]): string[] {
  const overlaps = pairs.flatMap(({ base, here }) => [...base, ...here]).filter((round) => round.overlaps > 0);
  if (overlaps.length > 0) throw new Error(`${name}: two held a lock at the same time`);
  const speeds = compare(pairs, ({ opsPerSecond }) => opsPerSecond);
  const cpu = compare(pairs, ({ clientCpu }) => clientCpu);
  return [
    name,
    figure(speeds.base),
    figure(speeds.here),
    ratio(speeds.here / speeds.base),
    ratio(speeds.ratio),
    interval(speeds.interval),
    figure(cpu.base),
    figure(cpu.here),
    ratio(cpu.ratio),
    interval(cpu.interval),
  ];
}

/** The medians over all pairs, and the median of the ratios within each pair. */
function compare(pairs: readonly Pair[], value: (round: Round) => number) {
  const values = pairs.map(({ base, here }) => ({ base: median(base.map(value)), here: median(here.map(value)) }));
  const ratios = values.map(({ base, here }) => here / base);
  return {
    base: median(values.map(({ base }) => base)),
    here: median(values.map(({ here }) => here)),
    ratio: median(ratios),
    interval: medianInterval(ratios, 0.95),
  };
}

function ratio(value: number): string {
  return value.toFixed(3);
}

function interval(bounds: readonly [number, number] | undefined): string {
  return bounds === undefined ? '—' : `${ratio(bounds[0])} to ${ratio(bounds[1])}`;
}

/** Prints a line that the next one overwrites. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${text}`);
}
