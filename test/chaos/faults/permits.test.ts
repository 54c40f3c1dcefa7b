import type { Redis } from 'ioredis';
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { ServerClock } from '../../support/servers/server-clock.js';
import { until } from '../../support/until.js';
import { Digest, type Tenure } from '../checker/tenure.js';
import { History, machineTime } from '../history.js';
import { checkHistory } from '../history-checker.js';
import { COMMAND_TIMEOUT, LEASE } from './fault-run.js';
import { fault, ms, printFaultTable } from './fault-table.js';
import { leftInRedis } from './leftovers.js';
import type { Crew } from './load.js';
import { type LoadProcess, startLoad } from './load-process.js';
import { LoadReport } from './load-report.js';

/** How many locks there are, each with 64 callers: PERMIT_NAMES=1000 npm run suite -- chaos -t 'locks that n may hold' */
const NAMES = Number(process.env.PERMIT_NAMES ?? 20);
const PROCESSES = 6;
/** How many callers of each lock there are in each process. */
const PATIENT = [8, 8, 8, 8, 7, 7];
const HASTY = 3;
/**
 * The load of a single machine is limited, so more locks are each used less often: once in this time, in milliseconds.
 */
const IS_LARGE = NAMES > 100;
const PACE = IS_LARGE ? 2 * NAMES : 30;
/** Thousands of callers that are refused at once, and call again at once, would keep the machine busy for ever. */
const REST = IS_LARGE ? PACE : 20;
const SHORT = { watchdogTimeout: LEASE, commandTimeout: COMMAND_TIMEOUT, waiterTimeout: 1_000 };
const OPTIONS = IS_LARGE ? { watchdogTimeout: 9_000, commandTimeout: 3_000 } : SHORT;
const { watchdogTimeout, commandTimeout } = OPTIONS;
/** How long callers with a limit wait, so that some of them are served and others refused. */
const WAIT_TIME = 30 * PACE;
/** How much later than its lease, or its time limit, something may be noticed on a busy machine. */
const SLACK = 20_000;
/** How many calls are served between two faults. */
const CALLS = IS_LARGE ? 3_000 : 500;
const LONGEST = IS_LARGE ? 600_000 : 60_000;

/** Processes with these numbers are killed, stopped, and connected by a network that breaks. */
const [KILLED, STOPPED, CUT] = [0, 1, 2];

const clock = ServerClock.make();

/** Bodies take longer where more callers may hold the lock, so that all locks have as many acquisitions. */
function crewsOf(process: number): Crew[] {
  const each = NAMES / 4;
  const crews = [1, 2, 3, 5].flatMap((permits): Crew[] => {
    const crew = { name: `room of ${permits}`, names: each, permits, hold: permits * PACE, rest: REST };
    return [
      { ...crew, callers: PATIENT[process] },
      { ...crew, callers: HASTY, waitTime: WAIT_TIME },
    ];
  });
  // Their leases are renewed.
  return [...crews, { name: 'hall', names: each / 5, permits: 3, callers: 1, hold: watchdogTimeout * 0.7, rest: REST }];
}

/** For how many milliseconds nobody got this lock at most, although callers always wait for it. */
function longestPause(tenures: readonly Tenure[]): number {
  return Math.max(...tenures.slice(1).map(({ granted }, i) => granted.at - tenures[i].granted.at));
}

/** For how many milliseconds a dead process still has each of its places, by the clock of the server. */
async function placesOf({ spec }: LoadProcess, history: History, redis: Redis): Promise<number[]> {
  const grants = history.records.flatMap((record) =>
    record.kind === 'granted' && record.process === spec.process ? [record] : [],
  );
  const [client] = grants[0].owner.split(':');
  const [seconds, micros] = await redis.time();
  const now = Number(seconds) * 1_000 + Number(micros) / 1_000;
  const left = [...new Set(grants.map(({ lock }) => lock))].map(async (lock) => {
    const ends = await redis.zrange(`lock:${lock}`, 0, '-1', 'WITHSCORES');
    return ends.flatMap((owner, i) => (owner.startsWith(`${client}:`) ? [Number(ends[i + 1]) - now] : []));
  });
  return (await Promise.all(left)).flat().filter((rest) => rest > 0);
}

function tenuresByLock({ tenures }: Digest): Map<string, Tenure[]> {
  const locks = new Map<string, Tenure[]>();
  for (const tenure of tenures) locks.set(tenure.lock, [...(locks.get(tenure.lock) ?? []), tenure]);
  return locks;
}

/** How many milliseconds a release by one of these processes took at most. */
function slowestRelease({ calls }: Digest, processes: readonly LoadProcess[]): number {
  const names = processes.map(({ spec }) => spec.process);
  const times = [...calls.values()].flatMap(({ process, releaseAsked, released }) =>
    releaseAsked !== undefined && released !== undefined && names.includes(process)
      ? [released.at - releaseAsked.at]
      : [],
  );
  return times.reduce((most, time) => Math.max(most, time), 0);
}

/** Whether this process died as a holder. */
function diedWith(tenure: Tenure, dead: string, { calls }: Digest): boolean {
  return tenure.process === dead && calls.get(tenure.call)?.releaseAsked === undefined;
}

/**
 * How many milliseconds it took until as many living callers held this lock as may hold it, from the death of a holder
 * on.
 */
function refilledWithin(tenures: readonly Tenure[], { calls }: Digest, dead: string, diedAt: number): number {
  const mostHolders = calls.get(tenures[0].call)?.mostHolders ?? 1;
  const living = tenures.filter(({ process, valid }) => process !== dead && valid.length > 0);
  const steps = living.flatMap(({ valid }) => {
    const [first, last] = [valid[0], valid[valid.length - 1]];
    return [
      { at: first.from.at, by: 1 },
      { at: last.to.at, by: -1 },
    ];
  });
  let holders = 0;
  for (const { at, by } of steps.sort((one, other) => one.at - other.at)) {
    holders += by;
    if (holders === mostHolders && at >= diedAt) return at - diedAt;
  }
  return Number.POSITIVE_INFINITY;
}

/** What a growing history says about the calls that were served. */
class Progress {
  private served = 0;
  private read = 0;
  /** When each process got a lock last, and when it got each lock last. */
  private readonly last = new Map<string, number>();

  constructor(private readonly history: History) {}

  /** Waits until this process has just got this lock. */
  async acquired({ spec }: LoadProcess, lock: string): Promise<void> {
    const key = `${spec.process} ${lock}`;
    const since = machineTime();
    await until(() => (this.update().last.get(key) ?? 0) > since, LONGEST);
  }

  async busy(processes: readonly LoadProcess[]): Promise<void> {
    this.update();
    const wanted = this.served + CALLS;
    await until(() => this.update().served >= wanted, LONGEST);
    await this.resumed(processes);
  }

  /** @returns how many ms it takes from now on until each of these processes holds a lock again */
  async resumed(processes: readonly LoadProcess[]): Promise<number> {
    const since = machineTime();
    const last = ({ spec }: LoadProcess) => this.last.get(spec.process) ?? 0;
    await until(() => this.update() && processes.every((process) => last(process) > since), LONGEST);
    return Math.max(...processes.map(last)) - since;
  }

  private update(): this {
    const { records } = this.history;
    for (; this.read < records.length; this.read++) {
      const record = records[this.read];
      if (record.kind !== 'granted') continue;
      const { at, process, lock } = record;
      this.served++;
      this.last.set(process, at).set(`${process} ${lock}`, at);
    }
    return this;
  }
}

describe('locks that n may hold', () => {
  let redis: RedisServer;
  let proxy: TcpProxy;

  beforeAll(async () => {
    // Unlike its machine, its process may die without the loss of data.
    redis = await startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'no'], env: clock?.env });
    proxy = await startTcpProxy(redis.port);
  });
  afterAll(async () => {
    printFaultTable();
    await proxy?.stop();
    await redis?.stop();
    clock?.remove();
  });

  it(
    `are held by at most n while processes, connections and Redis fail: ${NAMES} locks, 64 callers each`,
    async () => {
      const history = new History();
      const control = redis.client();
      const processes = Array.from({ length: PROCESSES }, (_, n) => {
        const connection = n === CUT ? proxy.url : redis.url;
        const spec = { process: `process ${n + 1}`, options: { ...OPTIONS, connection }, crews: crewsOf(n) };
        return startLoad(spec, history, LONGEST);
      });
      const progress = new Progress(history);
      const began = machineTime();
      await progress.busy(processes);

      const [killed, stopped, cut] = [KILLED, STOPPED, CUT].map((n) => processes[n]);
      // Nobody holds this one for a short time.
      await progress.acquired(killed, 'hall:0');
      await killed.kill();
      const killedAt = machineTime();
      const places = await placesOf(killed, history, control);
      expect(places.length).toBeGreaterThan(0);
      expect(Math.max(...places)).toBeLessThanOrEqual(watchdogTimeout);
      const alive = processes.filter((process) => process !== killed);
      await progress.busy(alive);

      const stoppedAt = machineTime();
      stopped.freeze();
      await progress.busy(alive.filter((process) => process !== stopped));
      await until(() => machineTime() > stoppedAt + 1.5 * watchdogTimeout, LONGEST);
      stopped.thaw();
      history.add(stopped.spec.process, stoppedAt, { kind: 'stalled', until: machineTime() });
      await progress.busy(alive);

      for (const type of ['normal', 'pubsub', 'normal']) {
        await control.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes');
        await progress.resumed(alive);
      }
      const cutAt = machineTime();
      proxy.cutHalfOpen();
      await progress.busy(alive.filter((process) => process !== cut));
      await until(() => machineTime() > cutAt + 1.5 * watchdogTimeout, LONGEST);
      await proxy.heal();
      await progress.busy(alive);

      redis.pause();
      const pausedAt = machineTime();
      await until(() => machineTime() > pausedAt + 1.6 * commandTimeout, LONGEST);
      redis.resume();
      await progress.busy(alive);
      await redis.kill();
      await redis.start();
      await progress.busy(alive);

      clock?.set(-5);
      await progress.busy(alive);
      const took = machineTime() - began;

      await Promise.all(processes.map((process) => process.stop()));
      clock?.set(0);
      const whole = History.merge(history);
      whole.keepForOthers();
      const { explanation } = checkHistory(whole, { answeredWithin: SLACK, lossesReportedWithin: SLACK });
      if (explanation !== '') throw new Error(explanation);
      expect(await leftInRedis(redis)).toEqual([]);
      const digest = new Digest(whole);
      const locks = tenuresByLock(digest);
      const pause = Math.max(...[...locks.values()].map((tenures) => longestPause(tenures)));
      const healthy = processes.filter((_, n) => ![KILLED, STOPPED, CUT].includes(n));
      // A machine that is too busy to answer a release passes no lock on meanwhile.
      expect(pause).toBeLessThan(watchdogTimeout + SLACK + slowestRelease(digest, healthy));
      const dead = killed.spec.process;
      const orphaned = [...locks.values()].filter((tenures) =>
        tenures.some((tenure) => diedWith(tenure, dead, digest)),
      );
      const refilled = Math.max(...orphaned.map((tenures) => refilledWithin(tenures, digest, dead, killedAt)));
      expect(refilled).toBeLessThan(Number.POSITIVE_INFINITY);
      const report = new LoadReport(whole, 0);
      fault(
        `${NAMES} locks with \`permits\` 1, 2, 3 and 5, of 64 callers in ${PROCESSES} processes each: all of these faults`,
        'never more than n; places of a dead process are free after its lease; nothing is left',
        `${report.count('granted')} calls served, ${report.losses.length} leases lost, ${report.errors}, in ${ms(took)}; the ${places.length} places of a dead process are free after ${ms(Math.max(...places))} at a lease of ${ms(watchdogTimeout)}, and all are used again after ${ms(refilled)}; longest pause of any lock ${ms(pause)}`,
      );
    },
    20 * LONGEST,
  );
});
