import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Crew } from '../crew/crew.js';
import { keepCoresBusy } from '../measure/busy-cores.js';
import { countOverlaps, sorted } from '../measure/holdings.js';
import { sharedNow } from '../measure/shared-clock.js';
import { jainIndex, median, medianInterval, sum } from '../measure/statistics.js';
import { factor, figure, percent } from '../report/figures.js';
import type { ServicesJob, ServicesResult } from '../worker/services.js';
import { inTurn } from '../workloads/contest.js';
import type { Table } from '../workloads/workload.js';

/** Processes in which the services are. */
const PROCESSES = 4;
/** The least time before a round counts, in milliseconds. */
const SETTLING = 300;
/**
 * The milliseconds from the end of one body to the start of the next one that a wait is computed with. It is the same
 * for all contestants, so that all get the same callers.
 */
const BETWEEN = 1.5;

export const KINDS = ['patient', 'giving-up'] as const;
export type Kind = (typeof KINDS)[number];

/** What the services of one cell do, and what else the machine does. */
export interface Cell {
  readonly services: number;
  /** Milliseconds. */
  readonly body: number;
  readonly kind: Kind;
  /** Whether the cores of the machine are busy with something else. */
  readonly busy: boolean;
}

/** A contestant that can start any number of services. */
export interface Entrant {
  readonly name: string;
  /** Milliseconds of warm-up. */
  readonly warmUp: number;
  start(processes: number, servicesOfEach: number): Promise<Crew>;
}

interface Round {
  readonly handOver: number;
  /** The share of callers who gave up. */
  readonly refused: number;
  readonly commands: number;
  readonly messages: number;
  /** The share of one core. */
  readonly server: number;
  /** Milliseconds of CPU time of all processes. */
  readonly clients: number;
  readonly bodies: readonly number[];
  readonly overlaps: number;
}

export interface CellFigures {
  readonly cell: Cell;
  readonly rounds: ReadonlyMap<string, readonly Round[]>;
}

export interface ServicesPlan {
  readonly cells: readonly Cell[];
  readonly entrants: readonly Entrant[];
  readonly rounds: number;
  /** How long a round counts, in milliseconds. Four turns of everybody are counted at least. */
  readonly time: number;
  progress(text: string): void;
}

/** Runs the cells one after the other. In each round of a cell, the entrants take turns. */
export async function measureServices(redis: Redis, plan: ServicesPlan): Promise<readonly CellFigures[]> {
  const figures: CellFigures[] = [];
  for (const services of new Set(plan.cells.map((cell) => cell.services))) {
    const cells = plan.cells.filter((cell) => cell.services === services);
    const crews = await startCrews(services, cells[0], plan);
    try {
      for (const busy of [false, true]) {
        const own = cells.filter((cell) => cell.busy === busy);
        const leaveCores = busy && own.length > 0 ? keepCoresBusy() : () => {};
        try {
          for (const cell of own) figures.push(await measureCell(redis, cell, crews, plan));
        } finally {
          leaveCores();
        }
      }
    } finally {
      for (const crew of crews.values()) crew.close();
    }
  }
  return figures;
}

async function startCrews(services: number, cell: Cell, { entrants, progress }: ServicesPlan) {
  const processes = Math.min(PROCESSES, services);
  const crews = new Map<string, Crew>();
  for (const { name, warmUp, start } of entrants) {
    progress(`${services} services: ${name} starts`);
    const crew = await start(processes, services / processes);
    crews.set(name, crew);
    await crew.run('contend', jobOf({ ...cell, body: 0, kind: 'giving-up' }, `warm-up:${name}`, warmUp));
    crew.suspend();
  }
  return crews;
}

async function measureCell(redis: Redis, cell: Cell, crews: Map<string, Crew>, plan: ServicesPlan) {
  const rounds = new Map<string, Round[]>([...crews.keys()].map((name) => [name, []]));
  for (let round = 1; round <= plan.rounds; round++) {
    for (const name of inTurn([...crews.keys()], round)) {
      const key = `crowd:${name}:${round}:${Math.random()}`.replace(/[^\w:]+/g, '-');
      const crew = crews.get(name)!;
      crew.resume();
      try {
        rounds.get(name)!.push(await playRound(redis, crew, jobOf(cell, key, plan.time)));
        crew.suspend();
      } catch (error) {
        // Its rounds so far count.
        console.error(`${name} drops out: ${(error as Error).message}`);
        crew.close();
        crews.delete(name);
      }
      const latest = rounds.get(name)!.at(-1);
      plan.progress(
        `${titleOf(cell)}, round ${round} of ${plan.rounds}: ${name} ${figure(latest?.handOver ?? Number.NaN)} ms from body to body`,
      );
    }
  }
  return { cell, rounds };
}

/** Milliseconds until each of these services has had the lock once. */
export function turnOf(services: number, body: number): number {
  return services * (body + BETWEEN);
}

/** The least and the most that callers who give up wait, in milliseconds. */
export function waitsOf(turn: number): readonly [least: number, most: number] {
  return [turn / 2, 2 * turn];
}

function jobOf({ services, body, kind }: Cell, key: string, time: number): ServicesJob {
  const turn = turnOf(services, body);
  const startAt = sharedNow() + 50;
  const countFrom = startAt + Math.max(SETTLING, turn);
  const endAt = countFrom + Math.max(time, 4 * turn);
  const waits = kind === 'patient' ? 'for ever' : waitsOf(turn);
  return { key, body, waits, pause: turn, startAt, countFrom, endAt };
}

async function playRound(redis: Redis, crew: Crew, job: ServicesJob): Promise<Round> {
  const running = crew.run('contend', job);
  // Its error is thrown below.
  running.catch(() => {});
  await delay(job.countFrom - sharedNow());
  const before = await readServer(redis);
  await delay((job.endAt - job.countFrom) / 2);
  const listeners = await listenersOf(redis, job.key);
  await delay(job.endAt - sharedNow());
  const after = await readServer(redis);
  const results: readonly ServicesResult[] = await running;
  const time = job.endAt - job.countFrom;
  const bodies = results.flatMap((result) => result.bodies);
  const [total, refused] = [sum(bodies), sum(results.map((result) => result.refused))];
  // The server was read a moment later than the processes.
  const atServer = time / (after.at - before.at);
  const counted = (value: (result: ServicesResult) => number | undefined, otherwise: number) =>
    sum(results.map((result) => value(result) ?? (otherwise * atServer) / results.length));
  return {
    handOver: time / total,
    refused: refused / (refused + total),
    commands: counted(({ sent }) => sent, after.calls - before.calls) / total,
    messages: counted(({ messages }) => messages, (after.published - before.published) * listeners) / total,
    server: (after.cpu - before.cpu) / (after.at - before.at),
    clients: sum(results.map(({ cpu }) => cpu)) / 1e3 / total,
    bodies,
    overlaps: countOverlaps(results.map(({ holdings }) => sorted(Float64Array.from(holdings)))),
  };
}

/** What the server has done so far. Commands are those that clients send and scripts do not. Times are in ms. */
async function readServer(redis: Redis) {
  const [cpu, stats] = await Promise.all([redis.info('cpu'), redis.info('commandstats')]);
  const calls = (name: string) => Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
  const seconds = (name: string) => Number(new RegExp(`^${name}:(\\S+)`, 'm').exec(cpu)?.[1]);
  return {
    at: sharedNow(),
    cpu: (seconds('used_cpu_sys') + seconds('used_cpu_user')) * 1e3,
    calls: sum(['eval', 'evalsha', 'subscribe', 'unsubscribe', 'ping'].map(calls)),
    published: calls('publish'),
  };
}

/** How many connections listen to the channel of a lock of Redisson. */
async function listenersOf(redis: Redis, key: string): Promise<number> {
  return Number((await redis.pubsub('NUMSUB', `redisson_lock__channel:{${key}}`))[1]);
}

const COLUMNS = [
  'contestant',
  'services',
  'body ms',
  'ms from body to body',
  'interval',
  '÷ poller',
  'refused',
  'Jain',
  'commands',
  'messages',
  'Redis busy',
  'client CPU ms',
];

/** A table for each kind of caller and state of the machine. */
export function servicesTables(all: readonly CellFigures[], poller: string): readonly Table[] {
  const tables: Table[] = [];
  for (const busy of [false, true]) {
    for (const kind of KINDS) {
      const own = all.filter(({ cell }) => cell.busy === busy && cell.kind === kind);
      if (own.length === 0) continue;
      tables.push({
        title: `${kind === 'patient' ? 'Patient callers' : 'Callers that give up'}: ${busy ? 'every core is busy with something else' : 'the machine is otherwise idle'}`,
        columns: COLUMNS,
        rows: own.flatMap(({ cell, rounds }) => [...rounds.keys()].map((name) => rowOf(cell, rounds, name, poller))),
        notes: kind === 'patient' ? NOTES : [...NOTES, GIVING_UP],
      });
    }
  }
  return tables;
}

const NOTES = [
  'Medians of the rounds, and their interval of 95 %, or the least and the most if they are fewer than six.',
  '÷ poller: the median of the ratios of the rounds. Jain: acquisitions of each service in all rounds. Commands, messages and CPU: for each body.',
  'Redisson: a client and a thread for each service, lock() or tryLock() of an RLock. Its bodies are Thread.sleep(), which is more exact than a timer of Node.js. Its commands and messages are counted by the server, its CPU time has the compiler and the garbage collector of a JVM in it.',
];
const GIVING_UP = `They wait for half a turn to two turns of all services (a turn: services × (body + ${BETWEEN} ms)), and come back after a pause of at most one turn. Refused: their share of all calls.`;

function rowOf(cell: Cell, all: ReadonlyMap<string, readonly Round[]>, name: string, poller: string): string[] {
  const rounds = all.get(name)!;
  const middle = (of: (round: Round) => number) => median(rounds.map(of));
  const times = rounds.map(({ handOver }) => handOver);
  const [least, most] = medianInterval(times, 0.95) ?? [Math.min(...times), Math.max(...times)];
  const others = all.get(poller) ?? [];
  const both = Math.min(rounds.length, others.length);
  const ratio = median(times.slice(0, both).map((time, i) => time / others[i].handOver));
  const bodies = Array.from({ length: cell.services }, (_, i) => sum(rounds.map((round) => round.bodies[i])));
  const overlaps = sum(rounds.map((round) => round.overlaps));
  return [
    overlaps > 0 ? `${name}: ${overlaps} OVERLAPS` : name,
    String(cell.services),
    String(cell.body),
    figure(middle(({ handOver }) => handOver)),
    `${figure(least)} to ${figure(most)}`,
    factor(ratio),
    cell.kind === 'patient' ? '—' : percent(middle(({ refused }) => refused)),
    jainIndex(bodies).toFixed(3),
    figure(middle(({ commands }) => commands)),
    figure(middle(({ messages }) => messages)),
    percent(middle(({ server }) => server)),
    figure(middle(({ clients }) => clients)),
  ];
}

/** Milliseconds from body to body over the number of services, of the cells that `where` chooses. */
export function handOvers(
  all: readonly CellFigures[],
  where: (cell: Cell) => boolean,
  name: string,
): (readonly [services: number, time: number])[] {
  return all
    .filter(({ cell, rounds }) => where(cell) && rounds.has(name))
    .map(({ cell, rounds }) => [cell.services, median(rounds.get(name)!.map(({ handOver }) => handOver))] as const);
}

function titleOf({ services, body, kind, busy }: Cell): string {
  return `${services} services, ${kind}, bodies of ${body} ms, ${busy ? 'busy' : 'idle'} machine`;
}
