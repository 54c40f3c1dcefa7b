import { until } from '../../support/until.js';
import { History, type HistoryRecord } from '../history.js';
import { checkHistory } from '../history-checker.js';
import { RecordingProcess } from '../recording-process.js';
import { LEADER } from './relay.js';
import type { RelaySpec } from './relay-program.js';

export type RelayProcess = RecordingProcess<RelaySpec, HistoryRecord>;

export const LEASE = 1_000;
const PROCESSES = 4;
const PARCELS = 6;
const DETACHED_FOR = 3_000;

/** Four processes that pass locks on by tickets, and elect a leader, while a test causes faults. */
export class RelayRun {
  readonly history = new History();
  readonly processes: RelayProcess[] = [];
  private started = 0;

  private constructor(
    private readonly url: string,
    private readonly queue: string,
  ) {}

  /** @param queue the URL of the job queue, if it is not on the Redis of the locks */
  static async start(url: string, queue = url): Promise<RelayRun> {
    const run = new RelayRun(url, queue);
    for (let i = 0; i < PROCESSES; i++) run.add();
    await run.busy();
    return run;
  }

  add(): void {
    const seed = ++this.started;
    const spec: RelaySpec = {
      process: `p${seed}`,
      options: { connection: this.url, watchdogTimeout: LEASE, commandTimeout: 400, outageTimeout: 20_000 },
      queue: this.queue,
      relay: { parcels: PARCELS, detachedFor: DETACHED_FOR, seed },
    };
    const { records } = this.history;
    this.processes.push(
      new RecordingProcess(spec, {
        program: 'test/chaos/relays/relay-program.ts',
        record: (record) => void records.push(record),
        crashed: (at) => this.history.add(spec.process, at, { kind: 'crashed' }),
        endsWithin: 20_000,
      }),
    );
  }

  /** Waits until every process has used this many more tickets. */
  async busy(tickets = 10): Promise<void> {
    const used = ({ spec }: RelayProcess) =>
      this.history.records.filter(({ kind, process }) => kind === 'adopting' && process === spec.process).length;
    const wanted = this.processes.map((process) => [process, used(process) + tickets] as const);
    await until(() => wanted.every(([process, count]) => used(process) >= count), 60_000);
  }

  /** The process that leads now. */
  async leader(): Promise<RelayProcess> {
    let leader: RelayProcess | undefined;
    await until(() => {
      leader = this.processes.find(({ spec }) => spec.process === this.elections.at(-1)?.process);
      return leader;
    }, 30_000);
    return leader as RelayProcess;
  }

  /** Waits for the next election. Returns the time from `since` until then, in milliseconds. */
  async nextElection(since: number): Promise<number> {
    const next = () => this.elections.find(({ at }) => at > since);
    await until(next, 30_000);
    return (next() as HistoryRecord).at - since;
  }

  /** Takes a process out of the run. */
  remove(process: RelayProcess): RelayProcess {
    this.processes.splice(this.processes.indexOf(process), 1);
    return process;
  }

  /** Ends all processes, and checks their history. */
  async finish(): Promise<void> {
    const results = await Promise.allSettled(this.processes.map((process) => process.stop()));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
    const history = History.merge(this.history);
    expect(checkHistory(history).explanation).toBe('');
    const { adopted, refused } = this.counts;
    expect(adopted).toBeGreaterThan(50);
    expect(refused).toBeGreaterThan(5);
  }

  private get elections(): readonly HistoryRecord[] {
    return this.history.records.filter((record) => record.kind === 'granted' && record.lock === LEADER);
  }

  private get counts(): { adopted: number; refused: number } {
    const { records } = this.history;
    const adoptions = new Set(
      records.flatMap((record) => (record.kind === 'sent' && record.ticket ? record.call : [])),
    );
    const count = (kind: HistoryRecord['kind']) =>
      records.filter((record) => record.kind === kind && 'call' in record && adoptions.has(record.call)).length;
    return { adopted: count('granted'), refused: count('refused') };
  }
}
