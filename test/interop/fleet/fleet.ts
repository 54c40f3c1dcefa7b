import type { HistoryRecord } from '../../chaos/history.js';
import { History } from '../../chaos/history.js';
import { RecordingProcess } from '../../chaos/recording-process.js';
import type { RedissonPeer } from '../redisson-peer.js';
import type { FleetCaller, FleetSpec } from './fleet-program.js';

export type FleetProcess = RecordingProcess<FleetSpec, HistoryRecord>;

/** How long one caller has waited. */
export interface Wait {
  readonly process: string;
  /** How often others got the lock meanwhile. */
  readonly passed: number;
  readonly took: number;
  /** When it got the lock. */
  readonly at: number;
}

/** Processes of several versions of the library, and threads of a real Redisson, that use the same locks. */
export class Fleet {
  readonly history = new History();
  readonly processes: FleetProcess[] = [];
  private readonly threads: Promise<void>[] = [];
  private running = true;

  constructor(
    private readonly port: number,
    private readonly watchdogTimeout: number,
  ) {}

  /** @param library the folder of an older version. Default: this version */
  add(process: string, callers: readonly FleetCaller[], library?: string): FleetProcess {
    const { port, watchdogTimeout, history } = this;
    const spec: FleetSpec = { process, port, watchdogTimeout, callers, library };
    const added: FleetProcess = new RecordingProcess(spec, {
      program: 'test/interop/fleet/fleet-program.ts',
      record: (record) => void history.records.push(record),
      crashed: (at) => history.add(process, at, { kind: 'crashed' }),
      endsWithin: 20_000,
    });
    this.processes.push(added);
    return added;
  }

  /** Lets a thread of Java use a lock in a loop. It waits for as long as it takes. */
  addThread(java: RedissonPeer, thread: string, { name, type, hold }: FleetCaller): void {
    const loop = async () => {
      for (let n = 1; this.running; n++) {
        const call = `${thread}/${n}`;
        const { result } = await java.run(thread, 'visit', `lock:${name}`, type, `visits:${name}`, hold);
        const [asked, granted, ended, , token] = result.split(',').map(Number);
        const add = (ns: number, event: Parameters<History['add']>[2]) => this.history.add(thread, ns / 1e6, event);
        add(asked, { kind: 'sent', call, locks: [name], patient: true });
        add(granted, { kind: 'granted', call, lock: name, type, owner: call, token: token || undefined });
        add(ended, { kind: 'release-asked', call });
        add(ended, { kind: 'release-answered', call, outcome: 'released' });
      }
    };
    this.threads.push(loop());
  }

  /** How often each process and thread has held a lock, or this lock, since then. */
  grants(since = 0, lock?: string): Map<string, number> {
    const counts = new Map<string, number>();
    for (const record of this.history.records) {
      if (record.kind !== 'granted' || record.at < since || (lock !== undefined && record.lock !== lock)) continue;
      counts.set(record.process, (counts.get(record.process) ?? 0) + 1);
    }
    return counts;
  }

  /**
   * For each call that was granted this lock since then: how often others were granted it meanwhile, and for how many
   * milliseconds the caller waited. What was before does not count.
   */
  waits(lock: string, since: number): readonly Wait[] {
    const asked = new Map<string, number>();
    const grants: number[] = [];
    const waits: Wait[] = [];
    // Java's records arrive late.
    for (const record of History.merge(this.history).records) {
      const { at, process, kind } = record;
      if (kind === 'sent' && record.locks.includes(lock)) asked.set(record.call, Math.max(at, since));
      if (kind !== 'granted' || record.lock !== lock || at < since) continue;
      const from = asked.get(record.call)!;
      waits.push({ process, passed: grants.filter((grant) => grant > from).length, took: at - from, at });
      grants.push(at);
    }
    return waits;
  }

  /** Whether the last thing that this process has recorded about this lock is its grant. */
  holds(process: string, lock: string): boolean {
    const last = this.history.records
      .filter((record) => record.process === process && record.kind !== 'confirmed')
      .at(-1);
    return last?.kind === 'granted' && last.lock === lock;
  }

  /** Ends all calls. Processes must end on their own. */
  async stop(): Promise<void> {
    this.running = false;
    const results = await Promise.allSettled([...this.threads, ...this.processes.map((process) => process.stop())]);
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }
}
