// @ts-nocheck It is moved to the simulation below the RedisBackend next.
import type { Grant, LockState } from '../../../lib/backends/lock-backend.js';
import { clientOf } from '../../../lib/backends/owner-ids.js';
import { lineChannel } from '../../../lib/backends/redis/lock-keys.js';
import { History, type HistoryEvent, type HistoryRecord } from '../history.js';
import type { Copy, LinkTrace, RequestTrace, Subject } from './simulated/link-trace.js';
import type { SimulatedProcess } from './simulated/simulated-process.js';
import type { SimulatedServer } from './simulated/simulated-server.js';
import type { VirtualTime } from './simulated/virtual-time.js';

/** What happened to a request, or what a process has recorded about its leases. */
export type TraceEvent =
  | { readonly kind: 'sent'; readonly request: TracedRequest }
  /**
   * `reserve`: how many tokens it asked for. `clock`: the clock of all tokens afterwards. `lock`: its owners afterwards,
   * and those who wait in its line.
   */
  | {
      readonly kind: 'executed';
      readonly request: TracedRequest;
      readonly copy: Copy;
      readonly reply: unknown;
      readonly reserve: number;
      readonly clock: number;
      readonly lock: TracedLock;
    }
  | { readonly kind: 'late' | 'request-lost'; readonly request: TracedRequest; readonly copy: Copy }
  /** The server has granted a lock to a place in its line. The request that made it do so is executed next. */
  | {
      readonly kind: 'granted-in-line';
      readonly key: string;
      readonly owner: string;
      /** What its client may believe. Undefined: it has to ask. */
      readonly grant: Grant | undefined;
      readonly clock: number;
      /** When the lease ends that the server has written, by its clock. */
      readonly until: number;
    }
  /** The server has told the client of a place that the lock is free, or has changed. */
  | { readonly kind: 'told-in-line'; readonly key: string; readonly owner: string }
  /** A process begins because a message grants it the lock: until then, by its own clock, in milliseconds. */
  | {
      readonly kind: 'believed';
      readonly process: string;
      readonly key: string;
      readonly owner: string;
      readonly grant: Grant;
      /** The lease that the caller wants who is next; 0: it is none that a message may grant. */
      readonly wanted: number;
      readonly until: number;
    }
  | { readonly kind: 'resent'; readonly request: TracedRequest }
  | { readonly kind: 'answered'; readonly request: TracedRequest; readonly reply: unknown }
  | { readonly kind: 'failed'; readonly request: TracedRequest; readonly outcome: 'refused' | 'unknown' }
  | { readonly kind: 'data-lost' }
  | { readonly kind: 'record'; readonly record: HistoryRecord }
  | { readonly kind: 'of-several'; readonly process: string; readonly step: SeveralStep };

/** What a call for several names does between its requests. */
export type SeveralStep = { readonly caller: number } & (
  | { readonly what: 'comes'; readonly keys: readonly string[] }
  /** It waits for this name alone. */
  | { readonly what: 'waits'; readonly key: string }
  | { readonly what: 'got' | 'gives'; readonly key: string; readonly owner: string }
  /** It waits for one name after the other, and holds those that it has got for this time at most. */
  | { readonly what: 'holds'; readonly longestHold: number }
  /** The time for that is over. */
  | { readonly what: 'over' }
  /** It has got all names, or none. */
  | { readonly what: 'leaves' }
  /** Specifications know nothing of what it does. */
  | { readonly what: 'unspecified' }
);

/** `at`: virtual milliseconds. `server`: what the server's clock shows, in milliseconds. */
export type TracedEvent = TraceEvent & { readonly at: number; readonly server: number };

export interface TracedLock {
  readonly mode: LockState['mode'];
  readonly holders: readonly string[];
  readonly line: readonly string[];
  /** The processes that listen for messages to their places. */
  readonly listening: readonly string[];
}

export interface TracedRequest {
  readonly id: number;
  readonly process: string;
  readonly subject: Subject;
  readonly seen: number;
  readonly validUntil: number | undefined;
  /** The copy whose answer the process has read. */
  read: Copy | undefined;
  resent: boolean;
  late: boolean;
}

const FREE: TracedLock = { mode: 'free', holders: [], line: [], listening: [] };

/** Everything that happens in one simulation, in order, for checks against the specification in test/spec. */
export class SimulationTrace implements LinkTrace {
  readonly events: TracedEvent[] = [];
  readonly history: History;
  /** How fast the clock of each process runs, by the process's name. */
  readonly rates = new Map<string, number>();
  commandTimeout = 0;
  /** The calls for several names that have asked for a lock under these owner ids. */
  readonly askers = new Map<string, number>();
  private callers = 0;
  private readonly processes = new Map<SimulatedProcess, number>();
  private time!: VirtualTime;
  private server!: SimulatedServer;
  private ids = 0;

  constructor(readonly knowsGrants = false) {
    this.history = new WatchedHistory((record) => this.add({ kind: 'record', record }));
  }

  begin(time: VirtualTime, server: SimulatedServer): void {
    this.time = time;
    this.server = server;
    server.onDataLoss = () => this.add({ kind: 'data-lost' });
    server.onLineMessage = (channel, { owner, lock, grant }) => {
      const key = channel.slice(lineChannel('', clientOf(owner)).length);
      if (lock !== 'granted') return this.add({ kind: 'told-in-line', key, owner });
      const until = server.store.locks.get(key, server.wall())?.awaited(server.wall())[1] ?? 0;
      this.add({ kind: 'granted-in-line', key, owner, grant, clock: this.clock, until });
    };
  }

  joined(process: SimulatedProcess, commandTimeout: number): void {
    this.rates.set(process.name, 1 / process.tick);
    this.processes.set(process, process.wall() - process.monotonic());
    this.commandTimeout = commandTimeout;
  }

  /** Whether its times can be used, because no clock was set, and no machine was suspended. */
  get isTimed(): boolean {
    const clocks = [...this.processes];
    return (
      !this.server.clockWasSet && clocks.every(([{ wall, monotonic }, ahead]) => isClose(wall() - monotonic(), ahead))
    );
  }

  sent(process: string, subject: Subject, seen: number, validUntil: number | undefined): RequestTrace {
    const id = ++this.ids;
    const request: TracedRequest = {
      id,
      process,
      subject,
      seen,
      validUntil,
      read: undefined,
      resent: false,
      late: false,
    };
    this.add({ kind: 'sent', request });
    return {
      executed: (reply, copy) => {
        const reserve = 'reserve' in subject ? subject.reserve() : 0;
        const lock = 'key' in subject ? this.lock(subject.key) : FREE;
        this.add({ kind: 'executed', request, copy, reply, reserve, clock: this.clock, lock });
      },
      late: (copy) => {
        request.late = true;
        this.add({ kind: 'late', request, copy });
      },
      lost: (copy) => this.add({ kind: 'request-lost', request, copy }),
      resent: () => {
        request.resent = true;
        this.add({ kind: 'resent', request });
      },
      answered: (reply) => {
        request.read = request.resent ? 2 : 1;
        this.add({ kind: 'answered', request, reply });
      },
      failed: (outcome) => {
        if (request.late && outcome === 'refused') request.read = 1;
        this.add({ kind: 'failed', request, outcome });
      },
    };
  }

  believed(event: Omit<TraceEvent & { kind: 'believed' }, 'kind'>): void {
    this.add({ kind: 'believed', ...event });
  }

  /** The number of a call for several names. */
  nextCaller(): number {
    return ++this.callers;
  }

  ofSeveral(process: string, step: SeveralStep): void {
    this.add({ kind: 'of-several', process, step });
  }

  /** The last token of the clock that all locks share. */
  private get clock(): number {
    return (this.server.store.fencing as unknown as { shared: { last: number } }).shared.last;
  }

  private lock(key: string): TracedLock {
    const now = this.server.wall();
    const { locks, lines, channels } = this.server.store;
    const { mode, owners } = locks.get(key, now)?.state(now) ?? { mode: 'free' as const, owners: [] };
    const line = lines.get(key, now)?.owners(now) ?? [];
    const listening = [...this.rates.keys()].filter((process) => channels.hasListeners(lineChannel(key, process)));
    return { mode, holders: owners.map(({ owner }) => owner), line, listening };
  }

  protected add(event: TraceEvent): void {
    this.events.push({ ...event, at: this.time.now, server: this.server.wall() });
  }
}

export class WatchedHistory extends History {
  constructor(private readonly watch: (record: HistoryRecord) => void) {
    super();
  }

  override add(process: string, at: number, event: HistoryEvent): void {
    super.add(process, at, event);
    this.watch(this.records[this.records.length - 1]);
  }
}

/** Equal but for the rounding of numbers. */
function isClose(one: number, other: number): boolean {
  return Math.abs(one - other) < 0.01;
}
