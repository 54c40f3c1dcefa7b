import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import type { RedisLockOptions } from '../../../lib/service/redis-lock-options.js';
import { RELEASE } from '../../support/release-under-test.js';
import { until } from '../../support/until.js';
import { History, machineTime } from '../history.js';
import { checkHistory } from '../history-checker.js';
import { HistoryRecorder } from '../history-recorder.js';
import { type Crew, Load } from './load.js';
import { type LoadProcess, startLoad } from './load-process.js';
import { LoadReport } from './load-report.js';
import { recorded } from './recorded.js';

/** Leases are short, so that those of dead processes end soon. In milliseconds. */
export const LEASE = 1_500;
export const COMMAND_TIMEOUT = 400;

/** By how much the clock of tokens may be ahead of the time of day, in µs. */
const CLOCK_LEAD = 150_000;

/**
 * The load of all processes: a contended lock, a fair one, readers and a writer, and a body that outlasts several
 * renewals.
 */
export const CREWS: readonly Crew[] = [
  { name: 'stock', type: 'reentrant', callers: 3, hold: 2 },
  { name: 'queue', type: 'fair', callers: 2, hold: 2 },
  { name: 'ledger', type: 'fenced', callers: 1, hold: 2 },
  { name: 'page', type: 'read', callers: 2, hold: 3 },
  { name: 'page', type: 'write', callers: 1, hold: 3 },
  { name: 'report', type: 'reentrant', callers: 1, hold: 800 },
  { name: 'cron', type: 'reentrant', callers: 1, hold: 5, waitTime: 0 },
];

/** Multiplies the duration of the load: 1 in the short form. */
export const LONG = Number(process.env.CHAOS_LONG ?? 1);

export interface FaultRunOptions {
  readonly connection: RedisLockOptions['connection'];
  readonly options?: Partial<RedisLockOptions>;
  readonly crews?: readonly Crew[];
  /** How many services run in this process, and how many in separate processes. Default 2 and 2. */
  readonly services?: number;
  readonly processes?: number;
}

/**
 * Lock services in this and in other processes, which all use the same locks while a test breaks something.
 *
 *     const run = await FaultRun.start({ connection: redis.url });
 *     await redis.kill(); …
 *     await run.resumed();
 *     await run.finish();  // asks the history whether the promises held
 */
export class FaultRun {
  readonly history = new History();
  readonly options: RedisLockOptions;
  readonly processes: LoadProcess[] = [];
  /** What the services of this process have logged. */
  readonly log: string[] = [];
  private readonly services: LockService[] = [];
  private readonly loads: Load[] = [];
  private readonly frozen = new Set<string>();
  private faultAt = 0;

  /** Settles when every process has held a lock. */
  static async start(options: FaultRunOptions): Promise<FaultRun> {
    const run = new FaultRun(options);
    try {
      await run.busy();
    } catch (error) {
      await run.stop().catch(() => {});
      throw error;
    }
    return run;
  }

  private constructor({ connection, options, crews = CREWS, services = 2, processes = 2 }: FaultRunOptions) {
    const defaults = { watchdogTimeout: LEASE, commandTimeout: COMMAND_TIMEOUT, waiterTimeout: 1_000 };
    this.options = { connection, release: RELEASE, ...defaults, ...options };
    for (let i = 1; i <= services; i++) {
      const locks = this.make();
      this.loads.push(new Load(`service ${i}`, locks, crewsOf(i, crews), this.history));
    }
    for (let i = 1; i <= processes; i++) {
      const spec = { process: `process ${i}`, options: this.options, crews: crewsOf(i, crews) };
      this.processes.push(startLoad(spec, this.history));
    }
  }

  /**
   * Opens one more service in this process, for the test itself. Its leases are recorded in the history, too.
   * {@link finish} closes it.
   */
  service(options: Partial<RedisLockOptions> = {}): LockService {
    const locks = this.make(options);
    return recorded(locks, new HistoryRecorder(this.history, `test ${this.services.length}`, locks, machineTime));
  }

  /** Notes the time, and runs `work`, which breaks something. */
  async breaks<T>(work: () => T | Promise<T>): Promise<T> {
    this.faultAt = machineTime();
    return work();
  }

  /** Waits until every living process has held a lock again. Returns how many ms this took, from now on. */
  async resumed(): Promise<number> {
    const since = machineTime();
    const names = this.alive();
    const { report } = this;
    await until(() => names.every((name) => report.firstGrant(name, since) !== undefined), 30_000);
    return Math.max(...names.map((name) => report.firstGrant(name, since)!)) - since;
  }

  /** Waits until this many more calls were served. */
  async busy(calls = 100 * LONG): Promise<void> {
    const { report } = this;
    const wanted = report.count('granted') + calls;
    await until(() => report.count('granted') >= wanted, 60_000);
    await this.resumed();
  }

  freeze(process: LoadProcess): void {
    this.frozen.add(process.spec.process);
    process.freeze();
  }

  thaw(process: LoadProcess): void {
    this.frozen.delete(process.spec.process);
    process.thaw();
  }

  /**
   * Ends the load, and leaves its history alone: what the history may contain after this fault, only the test knows,
   * see finish(). For hooks, which clean up after it.
   */
  async stop(): Promise<void> {
    const results = await Promise.allSettled([
      ...this.loads.map((load) => load.stop()),
      ...this.processes.map((process) => process.stop()),
    ]);
    results.push(...(await Promise.allSettled(this.services.map((locks) => locks.close()))));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  /**
   * Ends the load, and checks the history: no two valid leases overlapped, tokens grew, every caller was served or got
   * an error, and losses were reported. Processes must end on their own.
   *
   * @param fenced leases may have overlapped, as after a failover that forgot some of them; tokens must still have
   *   grown
   * @param twoMasters two masters may have served at the same time, so a token may be lower by 0.15 s, see
   *   docs/fencing-tokens.md
   * @param except rules of the checker that this fault suspends
   */
  async finish({
    fenced = false,
    twoMasters = false,
    except = [],
  }: {
    fenced?: boolean;
    twoMasters?: boolean;
    except?: readonly string[];
  } = {}): Promise<LoadReport> {
    await this.stop();
    const history = History.merge(this.history);
    // Others have no rule for what these options allow.
    if (!fenced && !twoMasters && except.length === 0) history.keepForOthers();
    const { explanation } = checkHistory(history, {
      clockLead: twoMasters ? CLOCK_LEAD : 0,
      except: fenced ? ['no overlap', ...except] : except,
    });
    if (explanation !== '') throw new Error(explanation);
    return this.report;
  }

  get report(): LoadReport {
    return new LoadReport(this.history, this.faultAt);
  }

  /** The errors of callers since the fault, as text: `LockUnavailableError ×3`. */
  get errors(): string {
    return this.report.errors;
  }

  private make(options: Partial<RedisLockOptions> = {}): LockService {
    const note = (message: string) => void this.log.push(message);
    // With minReplicas, releases have to be confirmed.
    const { release } = options.minReplicas === undefined ? this.options : { release: undefined };
    // Its callers wait for as long as it takes, on purpose.
    const patient = { waitTime: Number.POSITIVE_INFINITY, logger: { warn: note, error: note } };
    const locks = createLockService({ ...patient, ...this.options, release, ...options });
    this.services.push(locks);
    return locks;
  }

  private alive(): string[] {
    const processes = this.processes.filter(({ killed }) => !killed);
    const names = [...this.loads.map((_, i) => `service ${i + 1}`), ...processes.map(({ spec }) => spec.process)];
    return names.filter((name) => !this.frozen.has(name));
  }
}

/** Only the first service of each kind has long bodies, because a run ends when all of them have had their turn. */
function crewsOf(number: number, crews: readonly Crew[]): readonly Crew[] {
  return number === 1 ? crews : crews.filter(({ hold }) => hold < LEASE / 3);
}
