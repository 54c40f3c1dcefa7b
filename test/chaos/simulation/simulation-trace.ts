import type { Grant, LockBackend, LockState, Wake } from '../../../lib/backends/lock-backend.js';
import { clientOf } from '../../../lib/backends/owner-ids.js';
import { keysOf } from '../../../lib/backends/redis/calls/item-answer.js';
import { FAIR_KEYS, TOKEN_COUNTER } from '../../../lib/backends/redis/commands/lock-scripts.js';
import { toText } from '../../../lib/backends/redis/in-process/bytes.js';
import { InProcessServer } from '../../../lib/backends/redis/in-process/in-process-server.js';
import { LuaError } from '../../../lib/backends/redis/in-process/lua-table.js';
import type { Reply } from '../../../lib/backends/redis/in-process/redis-error.js';
import { TRANSLATED_SCRIPTS } from '../../../lib/backends/redis/in-process/translated-scripts.generated.js';
import { lineChannel, linePlaces, tokenClock } from '../../../lib/backends/redis/lock-keys.js';
import { lineListener } from '../../../lib/backends/redis/pubsub/wake-listener.js';
import { scripts } from '../../../lib/backends/redis/scripts.js';
import { History, type HistoryEvent, type HistoryRecord } from '../history.js';
import { copyKeys } from './simulated/copy-keys.js';
import type { CommandTrace, Copy, LinkTrace, RequestTrace, Subject } from './simulated/link-trace.js';
import type { SimulatedProcess } from './simulated/simulated-process.js';
import type { SimulatedServer } from './simulated/simulated-server.js';
import { requestName, type TracedCall, tracedCall } from './simulated/traced-call.js';
import type { VirtualTime } from './simulated/virtual-time.js';

/** What happened to a request, or what a process has recorded about its leases. */
export type TraceEvent =
  | { readonly kind: 'sent'; readonly request: TracedRequest }
  /**
   * `seen`: the highest token that the process has seen. `draw`: the tokens that its script has drawn from the clock of
   * all tokens, which shows `clock` afterwards. `lock`: its owners afterwards, and those who wait in its line.
   */
  | {
      readonly kind: 'executed';
      readonly request: TracedRequest;
      readonly copy: Copy;
      readonly reply: unknown;
      readonly seen: number;
      readonly draw: TokenDraw;
      readonly clock: number;
      readonly lock: TracedLock;
    }
  | { readonly kind: 'request-lost'; readonly request: TracedRequest; readonly copy: Copy }
  | { readonly kind: 'late'; readonly request: TracedRequest; readonly copy: Copy; readonly answer: LateAnswer }
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
  /**
   * `again`: the answer to this copy was that it came too late, so it is sent once more. Otherwise, it is another copy.
   * `deadline`: the server time in ms after which it is not executed.
   */
  | {
      readonly kind: 'resent';
      readonly request: TracedRequest;
      readonly copy: Copy;
      readonly deadline: number | undefined;
      readonly again: boolean;
    }
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
  /** In the order in which requests are sent. */
  id: number;
  readonly process: string;
  readonly subject: Subject;
  /** The deadline of its first copy. */
  validUntil: number | undefined;
  /** The copy whose answer the process has read. */
  read: Copy | undefined;
  /** Its last answer was that it came too late. */
  late: boolean;
}

/** That a copy of a request came too late. */
export interface LateAnswer {
  /** So it is sent once more. */
  again: boolean;
}

/** Tokens that one script draws for several requests, each with more that are reserved for it. */
export interface TokenDraw {
  readonly reserve: number;
  /** For how many acquisitions they were drawn. */
  readonly count: number;
  /** The keys that were acquired with them. */
  readonly keys: readonly string[];
  /** 0: there is none. */
  readonly first: number;
}

/** What the trace knows of a request before its projections read it. */
interface Pending {
  readonly request: TracedRequest;
  /** The trace tells of it. */
  isSent: boolean;
  /** It is in a command, or will never be. */
  isInCommand: boolean;
  copies: Copy;
  readonly open: Set<Copy>;
  /** The copy whose answer was read last. */
  answered: Copy | undefined;
  late: LateAnswer | undefined;
}

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
  private servers: readonly SimulatedServer[] = [];
  private failedOver = false;
  private ids = 0;
  /** The requests of each name, by process. */
  private readonly named = new Map<string, Pending[]>();
  private readonly all: Pending[] = [];
  /** What the server did not know by its digest, and will get by its source. */
  private readonly unknown = new Map<string, ReadonlyMap<Pending, Copy>>();
  /** The messages to places that the running script has sent. */
  private messages: LineMessage[] = [];
  private running: SimulatedServer | undefined;

  constructor(readonly knowsGrants = false) {
    this.history = new WatchedHistory((record) => this.add({ kind: 'record', record }));
  }

  begin(time: VirtualTime, servers: readonly SimulatedServer[]): void {
    this.time = time;
    this.servers = servers;
    for (const server of servers) {
      server.trace = {
        dataLost: (what) => {
          if (what === 'latest') this.failedOver = true;
          this.add({ kind: 'data-lost' });
        },
        published: (channel, text) => this.published(server, channel, text),
      };
    }
  }

  /** To be called when the simulation has ended: what was not executed was lost. */
  end(): void {
    for (const pending of this.all) {
      if (pending.isSent) this.lost(pending);
    }
  }

  joined(process: SimulatedProcess, commandTimeout: number): void {
    this.rates.set(process.name, 1 / process.tick);
    this.processes.set(process, process.wall() - process.monotonic());
    this.commandTimeout = commandTimeout;
  }

  /** The name of the process of an owner. */
  processOf(owner: string): string {
    const client = clientOf(owner);
    return [...this.processes.keys()].find(({ clientId }) => clientId === client)?.name ?? client;
  }

  /** A process uses this backend. */
  serves(backend: LockBackend, process: string): void {
    tracedBackends.set(backend, { process, trace: this });
  }

  /** Whether no clock was set, no machine was suspended, and no replica took the place of a server. */
  get isSpecified(): boolean {
    const clocks = [...this.processes];
    return (
      !this.failedOver &&
      !this.servers.some(({ clockWasSet }) => clockWasSet) &&
      clocks.every(([{ wall, monotonic }, ahead]) => isClose(wall() - monotonic(), ahead))
    );
  }

  asked(process: string, subject: Subject): RequestTrace {
    const request: TracedRequest = {
      id: 0,
      process,
      subject,
      validUntil: undefined,
      read: undefined,
      late: false,
    };
    const pending: Pending = {
      request,
      isSent: false,
      isInCommand: false,
      copies: 0,
      open: new Set(),
      answered: undefined,
      late: undefined,
    };
    this.all.push(pending);
    const id = `${process} ${requestName(subject)}`;
    this.named.set(id, [...(this.named.get(id) ?? []), pending]);
    // A release can be withdrawn until it is sent.
    if (subject.kind !== 'release') this.send(pending);
    return {
      answered: (reply) => {
        pending.isInCommand = true;
        if (!pending.isSent) return;
        request.read = pending.answered;
        this.add({ kind: 'answered', request, reply });
      },
      failed: (outcome) => {
        pending.isInCommand = true;
        if (!pending.isSent) this.send(pending);
        if (request.late && outcome === 'refused') request.read = pending.answered;
        const isRefused = outcome === 'refused' && !request.late;
        if (isRefused) pending.open.clear();
        this.add({ kind: 'failed', request, outcome });
      },
    };
  }

  sent(process: string, server: SimulatedServer, name: string, args: readonly string[]): CommandTrace | undefined {
    const call = tracedCall(name, args);
    if (call === undefined) return undefined;
    const asks = call.items.map((item) => this.next(this.named.get(`${process} ${item.name}`) ?? []));
    const id = [process, server.name, ...args.slice(1)].join(' ');
    let continued = name === 'eval' ? this.unknown.get(id) : undefined;
    for (const pending of asks) {
      if (pending === undefined) continue;
      if (pending.copies === 0) pending.request.validUntil = call.deadline;
      if (!pending.isSent) this.send(pending);
    }
    return {
      written: () => {
        const copies = new Map<Pending, Copy>();
        for (const pending of asks) {
          if (pending !== undefined) copies.set(pending, continued?.get(pending) ?? this.copy(pending, call));
        }
        continued = undefined;
        const copyOf = (item: number) => {
          const pending = asks[item];
          return pending && ([pending, copies.get(pending) as Copy] as const);
        };
        return {
          execute: (run) => this.execute(server, call, run, copyOf, () => this.unknown.set(id, copies)),
          lost: () => {
            for (const [pending, copy] of copies) this.lost(pending, copy);
          },
          answered: () => {
            for (const [pending, copy] of copies) pending.answered = copy;
          },
        };
      },
    };
  }

  /** The first of these requests that no command contains yet, or else the latest one. */
  private next(requests: readonly Pending[]): Pending | undefined {
    const pending = requests.find(({ isInCommand }) => !isInCommand) ?? requests.at(-1);
    if (pending !== undefined) pending.isInCommand = true;
    return pending;
  }

  private send(pending: Pending): void {
    pending.isSent = true;
    pending.request.id = ++this.ids;
    pending.open.add(1);
    this.add({ kind: 'sent', request: pending.request });
  }

  /** The number of the copy that is written now. */
  private copy(pending: Pending, { deadline }: TracedCall): Copy {
    const { request } = pending;
    const last = pending.copies;
    const again = request.late && pending.answered === last;
    if (last > 0) {
      if (again) (pending.late as LateAnswer).again = true;
      const copy = again ? last : last + 1;
      this.add({ kind: 'resent', request, copy, deadline, again });
    }
    if (!again) pending.copies++;
    request.late = false;
    pending.open.add(pending.copies);
    return pending.copies;
  }

  private lost(pending: Pending, ...copies: readonly Copy[]): void {
    const { request, open } = pending;
    for (const copy of copies.length === 0 ? [...open] : copies)
      if (open.delete(copy)) this.add({ kind: 'request-lost', request, copy });
  }

  private execute(
    server: SimulatedServer,
    call: TracedCall,
    run: () => Reply,
    copyOf: (item: number) => readonly [Pending, Copy] | undefined,
    isUnknown: () => void,
  ): Reply {
    const before = hasSameKeys(call) ? copyOfServer(server) : undefined;
    this.messages = [];
    this.running = server;
    let reply: Reply;
    try {
      reply = run();
    } catch (error) {
      if (error instanceof LuaError && error.message.startsWith('NOSCRIPT')) isUnknown();
      throw error;
    } finally {
      this.running = undefined;
    }
    this.executed(server, call, toText(reply), copyOf, before);
    return reply;
  }

  private executed(
    server: SimulatedServer,
    call: TracedCall,
    reply: unknown,
    copyOf: (item: number) => readonly [Pending, Copy] | undefined,
    before: InProcessServer | undefined,
  ): void {
    if (Array.isArray(reply) && reply[0] === 'expired') {
      for (const item of call.items.keys()) {
        const [pending, copy] = copyOf(item) ?? [];
        if (pending === undefined || copy === undefined) continue;
        pending.open.delete(copy);
        pending.request.late = true;
        pending.late = { again: false };
        this.add({ kind: 'late', request: pending.request, copy, answer: pending.late });
      }
      return;
    }
    const answers = call.items.map((_, item) => call.answer(reply, item));
    const clock = this.clock(server);
    const draw = drawOf(call, answers);
    const order = orderOf(call, answers);
    for (const [n, item] of order.entries()) {
      const { key } = call.items[item];
      const isLast = isLastOf(order.slice(n), call, () => true);
      const isLastChange = isLastOf(order.slice(n), call, (other) => !isIdle(answers[other]));
      this.tell((message) => n === order.length - 1 || (isLastChange && message.key === key));
      const [pending, copy] = copyOf(item) ?? [];
      if (pending === undefined || copy === undefined) continue;
      const { request } = pending;
      pending.open.delete(copy);
      const between = isLast ? server.redis : after(before, call, order.slice(0, n + 1));
      // That of a clock has another key than its request.
      const lock = this.lock(server, 'key' in request.subject ? request.subject.key : key, between);
      const { seen } = call;
      this.add({ kind: 'executed', request, copy, reply: answers[item], seen, draw, clock, lock });
    }
  }

  /** Adds the messages of the running script that are wanted. */
  private tell(isWanted: (message: LineMessage) => boolean): void {
    for (const message of this.messages.filter(isWanted)) this.add(message);
    this.messages = this.messages.filter((message) => !isWanted(message));
  }

  private published(server: SimulatedServer, channel: string, text: string): void {
    if (this.running !== server || !channel.startsWith(LINE_CHANNEL)) return;
    const hear = (wake: Wake) => {
      if (wake.kind !== 'message' || wake.owner === undefined) return;
      const { owner, lock, grant } = wake;
      const key = nameIn(channel.slice(LINE_CHANNEL.length, -`:${clientOf(owner)}`.length));
      if (lock !== 'granted') return void this.messages.push({ kind: 'told-in-line', key, owner });
      const until = server.redis.keys.endOf(key) ?? 0;
      this.messages.push({ kind: 'granted-in-line', key, owner, grant, clock: this.clock(server), until });
    };
    lineListener(hear).message(channel, text);
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
  private clock({ redis }: SimulatedServer): number {
    return Number(redis.execute('GET', [tokenClock({ isCluster: false }, '')]) ?? 0);
  }

  private lock({ redis }: SimulatedServer, key: string, inspected: InProcessServer): TracedLock {
    const reply = inspected.run(scripts['inspect-5'].sha1, keysOf([...FAIR_KEYS, TOKEN_COUNTER], [{ key }]), []);
    const [mode, held] = reply as readonly [string, readonly string[]];
    const holders = held.filter((_, n) => n % 2 === 0);
    const places = inspected.execute('ZRANGE', [linePlaces(key), '0', '-1']) as readonly string[];
    const line = places.filter((owner) => Number(inspected.execute('ZSCORE', [lineLapses(key), owner])) > redis.now());
    const listening = [...this.processes.keys()].filter(({ clientId }) =>
      (['channel', 'sharded'] as const).some((kind) => redis.countSubscribers(kind, lineChannel(key, clientId)) > 0),
    );
    const isShared = mode === 'read' || mode === 'write' || mode === 'permits';
    return {
      mode: holders.length === 0 ? 'free' : isShared ? mode : 'exclusive',
      holders,
      line,
      listening: listening.map(({ name }) => name),
    };
  }

  protected add(event: TraceEvent): void {
    this.events.push({ ...event, at: this.time.now, server: this.servers[0].wall() });
  }
}

type LineMessage = TraceEvent & { readonly kind: 'granted-in-line' | 'told-in-line'; readonly key: string };

const LINE_CHANNEL = lineChannel('', '').split('{')[0];

/** The times at which places lapse: see scripts/includes/line/line-of.lua. */
function lineLapses(key: string): string {
  return linePlaces(key).replace('_turns', '_turns_until');
}

/** The name of a lock, as it is in the names of its keys and channels. */
function nameIn(name: string): string {
  return /^\{([^{]*)\}$/.exec(name)?.[1] ?? name;
}

/** Two of its items are about one key, so that the lock has a state between them. */
function hasSameKeys({ items }: TracedCall): boolean {
  return new Set(items.map(({ key }) => key)).size < items.length;
}

function copyOfServer({ redis }: SimulatedServer): InProcessServer {
  const micros = redis.micros();
  const copy = new InProcessServer({ scripts: TRANSLATED_SCRIPTS, micros: () => micros, address: 'copy' });
  copyKeys(redis, copy);
  return copy;
}

/** The server after these items of a call. */
function after(before: InProcessServer | undefined, call: TracedCall, items: readonly number[]): InProcessServer {
  const micros = (before as InProcessServer).micros();
  const copy = new InProcessServer({ scripts: TRANSLATED_SCRIPTS, micros: () => micros, address: 'copy' });
  copyKeys(before as InProcessServer, copy);
  copy.execute('EVALSHA', call.only(items));
  return copy;
}

/** A release that finds nothing. */
function isIdle(answer: unknown): boolean {
  return (answer as { released?: boolean } | undefined)?.released === false;
}

/** Whether no wanted item that follows the first one is about its key. */
function isLastOf(
  [item, ...rest]: readonly number[],
  { items }: TracedCall,
  isWanted: (item: number) => boolean,
): boolean {
  return !rest.some((other) => items[other].key === items[item].key && isWanted(other));
}

/**
 * The order of the items: that of the call. But a script releases all of its locks before it grants one of them, so the
 * releases of others that find nothing come first.
 */
function orderOf({ items }: TracedCall, answers: readonly unknown[]): readonly number[] {
  const isFirst = (item: number) =>
    isIdle(answers[item]) && !items.slice(0, item).some(({ name }) => name === items[item].name);
  const all = [...items.keys()];
  return [...all.filter(isFirst), ...all.filter((item) => !isFirst(item))];
}

function drawOf({ items, reserve, draws: count }: TracedCall, answers: readonly unknown[]): TokenDraw {
  const taken = answers.flatMap((answer, item) => (tokensIn(answer).length > 0 ? [item] : []));
  const tokens = answers.flatMap(tokensIn);
  const first = tokens.length === 0 ? 0 : Math.min(...tokens);
  return { reserve, count, keys: taken.map((item) => items[item].key), first };
}

function tokensIn(answer: unknown): readonly number[] {
  const { token, tokens } = (answer ?? {}) as { token?: number; tokens?: readonly number[] };
  return tokens ?? (token === undefined ? [] : [token]);
}

/** The process of each traced backend that an engine uses, and its trace. */
export const tracedBackends = new WeakMap<LockBackend, { readonly process: string; readonly trace: SimulationTrace }>();

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
