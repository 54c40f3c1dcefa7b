import { type Contestant, keyOf } from '../contestants/contestant.js';
import { type Crew, TASK_LIMIT } from '../crew/crew.js';
import { countOverlaps, countWithin, type Holdings, longestWait } from '../measure/holdings.js';
import type { ServerLoad } from '../measure/server-meter.js';
import { sharedNow } from '../measure/shared-clock.js';
import { jainIndex, median, sum } from '../measure/statistics.js';
import type { LoopJob, LoopResult } from '../worker/lock-loop.js';
import type { Bench } from './workload.js';

/** Milliseconds until a process has compiled its hot code. */
const WARM_UP = 2_000;

/**
 * Milliseconds before each round that do not count. For about 60 ms after it was suspended, a process runs at two
 * thirds of its speed, the floor too. Pinned to one core it does not, so the cause seems to be that the operating
 * system spreads the threads over the cores again.
 */
const LEAD_IN = 100;

/**
 * How many processes take part one after another, because how well a process compiles the code is partly chance and
 * stays the same for its lifetime.
 */
export const CREWS = 3;

/** The callers of one or several processes, and the locks that they want. */
export interface Setting {
  readonly name: string;
  readonly processes: number;
  /** The number of connections of each process. */
  readonly connections: number;
  /** The number of callers of each connection. */
  readonly callers: number;
  readonly keys: 'one' | 'fresh';
  /** Milliseconds. */
  readonly body: number;
}

/** Callers who acquire and release over and over. */
export interface Contest extends Setting {
  /** The duration of a round in milliseconds, or `once` for one operation of each caller. */
  readonly duration: number | 'once';
  readonly rounds: number;
}

/** The results of one contestant in one round. Times are in µs unless stated otherwise. */
export interface Round {
  readonly opsPerSecond: number;
  readonly p50: number;
  readonly p99: number;
  /** Commands that its connections sent for each operation. */
  readonly sent: number;
  /** Commands that the server executed for each operation, including those that scripts call. */
  readonly executed: number;
  readonly serverCpu: number;
  readonly clientCpu: number;
  /** p99 of the event loop's delay, in ms. */
  readonly loopDelay: number;
  readonly jainOfCallers: number;
  readonly jainOfProcesses: number;
  /** The longest time that a process went without the lock while others had it, in ms. */
  readonly longestWait: number;
  readonly overlaps: number;
  readonly outOfOrder: number;
  /** The duration of the whole round, in ms. */
  readonly elapsed: number;
}

export type Rounds = ReadonlyMap<Contestant, readonly Round[]>;

/**
 * Runs all rounds, in each of which the contestants take turns. A contestant that fails drops out; its rounds so far
 * count.
 */
export async function play(bench: Bench, contest: Contest, contestants: readonly Contestant[]): Promise<Rounds> {
  const rounds = new Map<Contestant, Round[]>();
  const crews = new Map<Contestant, Crew>();
  const roundsOfCrew = contest.processes === 1 ? Math.ceil(contest.rounds / CREWS) : 1;
  const failed = new Set<Contestant>();
  try {
    for (let round = 1; round <= contest.rounds; round++) {
      for (const contestant of inTurn(contestants, round)) {
        if (failed.has(contestant)) continue;
        bench.progress(`${contest.name}: round ${round} of ${contest.rounds}, ${contestant.name}`);
        try {
          const crew = crews.get(contestant) ?? (await start(bench, contest, contestant));
          crews.set(contestant, crew);
          crew.resume();
          const key = keyOf(contestant, `${contest.name}:${round}`);
          await leadIn(contest, crew, `${key}:lead-in`);
          const figures = await playRound(bench, contest, crew, key);
          rounds.set(contestant, [...(rounds.get(contestant) ?? []), figures]);
        } catch (error) {
          failed.add(contestant);
          console.error(`${contest.name}: ${contestant.name} drops out: ${(error as Error).message}`);
        }
        if (round % roundsOfCrew > 0 && !failed.has(contestant)) {
          crews.get(contestant)?.suspend();
          continue;
        }
        crews.get(contestant)?.close();
        crews.delete(contestant);
      }
    }
  } finally {
    for (const crew of crews.values()) crew.close();
  }
  return rounds;
}

/**
 * Each round begins with another contestant, and every other round runs backwards, so that nobody always follows the
 * same one.
 */
export function inTurn<T>(contestants: readonly T[], round: number): T[] {
  const first = round % contestants.length;
  const order = [...contestants.slice(first), ...contestants.slice(0, first)];
  return round % 2 === 0 ? order : order.reverse();
}

/** Starts a crew. New processes are slow, so they first run rounds that do not count, without bodies. */
export async function start(bench: Bench, contest: Setting, contestant: Contestant, warmUp = WARM_UP): Promise<Crew> {
  const crew = await bench.crew(contestant, contest.processes, contest.connections);
  try {
    await crew.run('loop', jobOf({ ...contest, body: 0 }, keyOf(contestant, `${contest.name}:warm-up`), warmUp));
  } catch (error) {
    crew.close();
    throw error;
  }
  return crew;
}

/** Without bodies, and with a fresh key each time, so that nobody has to wait. */
export async function leadIn(contest: Setting, crew: Crew, key: string): Promise<void> {
  await crew.run('loop', jobOf({ ...contest, keys: 'fresh', body: 0 }, key, LEAD_IN));
}

export async function playRound({ meter }: Bench, contest: Contest, crew: Crew, key: string): Promise<Round> {
  const job = jobOf(contest, key, contest.duration);
  const { result, load } = await meter.during(() => crew.run('loop', job));
  return figuresOf(result, load, job);
}

function jobOf({ callers, keys, body, processes }: Setting, key: string, duration: LoopJob['duration']): LoopJob {
  // Slightly in the future, so that several processes start together.
  const startAt = sharedNow() + (processes > 1 ? 100 : 5);
  return { callers, key, keys, body, duration, startAt, keepHoldings: processes > 1 };
}

function figuresOf(results: readonly LoopResult[], load: ServerLoad, { startAt, duration }: LoopJob): Round {
  const operations = sum(results.map((result) => result.operations));
  const elapsed = Math.max(...results.map((result) => result.elapsed));
  const holdings = results.map((result) => result.holdings).filter((each): each is Holdings => each !== undefined);
  const until = startAt + (duration === 'once' ? TASK_LIMIT : duration);
  return {
    elapsed,
    opsPerSecond: (operations / elapsed) * 1e3,
    p50: median(results.map((result) => result.p50)),
    p99: Math.max(...results.map((result) => result.p99)),
    sent: sum(results.map((result) => result.sent ?? Number.NaN)) / operations,
    executed: load.commands / operations,
    serverCpu: load.cpu / operations,
    clientCpu: sum(results.map((result) => result.cpu)) / operations,
    loopDelay: Math.max(...results.map((result) => result.loopDelay ?? Number.NaN)),
    jainOfCallers: jainIndex(results.flatMap((result) => result.callers)),
    jainOfProcesses: holdings.length > 1 ? jainIndex(countWithin(holdings, startAt, until)) : Number.NaN,
    longestWait: holdings.length > 1 ? longestWait(holdings, startAt, until) : Number.NaN,
    overlaps: holdings.length > 1 ? countOverlaps(holdings) : sum(results.map((result) => result.overlaps ?? 0)),
    outOfOrder: sum(results.map((result) => result.outOfOrder)),
  };
}
