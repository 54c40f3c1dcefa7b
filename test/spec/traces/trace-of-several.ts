import type { Subject } from '../../chaos/simulation/simulated/link-trace.js';
import type {
  SeveralStep,
  SimulationTrace,
  TracedEvent,
  TracedRequest,
} from '../../chaos/simulation/simulation-trace.js';
import { succeeded } from './projection.js';
import { type Field, micros, serverTime } from './steps.js';
import { type About, SharedProjection, type SharedTrace } from './trace-of-shared.js';

/** The steps of some exclusive locks, and of the calls that want several of them, as `TraceSeveral.tla` reads them. */
export interface SeveralTrace extends SharedTrace {
  /** The lock of each owner, by the owner's number. */
  readonly names: readonly number[];
  /** Of each call for several locks: its process, the locks that it has to ask for, how long it may hold some of them. */
  readonly callers: readonly number[];
  readonly wants: readonly (readonly number[])[];
  readonly longest: readonly number[];
}

/** The names that are wanted together. */
const SETS = [
  ['order', 'parcel', 'stock'],
  ['journal', 'ledger'],
];

/** Undefined where names were taken in one step, and where calls are not in the specification. */
export function tracesOfSeveral(trace: SimulationTrace, name: (keys: string) => string): readonly SeveralTrace[] {
  if (!trace.isSpecified) return [];
  const inOneStep = new Set(
    trace.events.flatMap((event) => (event.kind === 'sent' ? keysTogether(event.request) : [])),
  );
  return SETS.filter((keys) => !keys.some((key) => inOneStep.has(key))).flatMap(
    (keys) => new SeveralProjection(trace, keys).traceOf(name(keys.join(' and '))) ?? [],
  );
}

function keysTogether({ subject }: TracedRequest): readonly string[] {
  return subject.kind === 'acquire-all' ? subject.keys : [];
}

/** What the projection knows of a call. */
interface Call {
  readonly c: number;
  readonly keys: readonly string[];
  isHolding: boolean;
  isPausing: boolean;
  overAt: number | undefined;
  /** The names that it passes on, because they came out of turn. */
  readonly passesOn: Set<string>;
  readonly has: Set<string>;
}

class SeveralProjection extends SharedProjection {
  private readonly lockOf = new Map<string, number>();
  private readonly callers: number[] = [];
  private readonly wants: (readonly number[])[] = [];
  private readonly longest: number[] = [];
  private readonly known = new Map<number, Call>();
  private readonly callOf = new Map<string, Call>();
  /** By the name that the history gives to a call. */
  private readonly leased = new Map<string, { readonly call: Call; readonly alone: boolean; until: number }>();
  private readonly sizes = new Map<string, number>();
  private readonly lastHolder = new Map<string, string | undefined>();

  traceOf(name: string): SeveralTrace | undefined {
    const trace = super.trace(name);
    if (trace === undefined || this.callers.length === 0) return undefined;
    const { callers, wants, longest } = this;
    const names = this.owners.map((owner) => this.lockOf.get(owner) ?? 0);
    return { ...trace, names, callers, wants, longest };
  }

  protected override more(subject: Extract<Subject, { readonly key: string }>): Readonly<Record<string, Field>> {
    const n = this.nameOf(subject.key);
    if ('owner' in subject) this.lockOf.set(subject.owner, n);
    const asker = subject.kind === 'acquire' ? this.source.askers.get(subject.owner) : undefined;
    const call = asker === undefined ? undefined : this.known.get(asker);
    if (call !== undefined) this.callOf.set((subject as About).owner, call);
    return { n, c: call?.c ?? 0 };
  }

  protected override failed({ subject }: TracedRequest, outcome: 'refused' | 'unknown'): void {
    if (subject.kind === 'acquire' && this.source.askers.has(subject.owner))
      this.add('fails', { o: this.owner(subject.owner), doubt: outcome === 'unknown' });
  }

  protected override executed(event: TracedEvent & { kind: 'executed' }): void {
    const { key, kind } = event.request.subject as About;
    const [holder] = event.lock.holders;
    const takes = kind === 'acquire' || kind === 'transfer';
    const last = this.lastHolder.get(key);
    this.lastHolder.set(key, holder);
    const hasTaken = takes && succeeded(event.request.subject, event.reply);
    if (holder === undefined || holder === last || hasTaken) return super.executed(event);
    const until = serverTime(this.grantedUntil.get(key) as number);
    const grant = { o: this.owner(holder), n: this.nameOf(key), until };
    // An acquisition finds the lock busy because it has just granted it.
    if (takes) this.add('grant', grant);
    super.executed(
      takes ? event : { ...event, lock: { ...event.lock, holders: [], line: [holder, ...event.lock.line] } },
    );
    if (!takes) this.add('grant', grant);
  }

  protected override ofSeveral({ process, step }: TracedEvent & { kind: 'of-several' }): void {
    if (step.what === 'comes') return this.comes(process, step);
    const call = this.known.get(step.caller);
    if (call === undefined) return;
    const { c } = call;
    switch (step.what) {
      case 'waits':
        if (!call.isHolding) this.add('waits', { c, n: this.nameOf(step.key) });
        return;
      case 'got':
        return this.got(call, step);
      case 'gives':
        call.has.delete(step.key);
        if (call.passesOn.delete(step.key) || call.overAt === this.now.at) return;
        return this.add('gives', { c, n: this.nameOf(step.key) });
      case 'holds':
        call.isHolding = true;
        call.isPausing = false;
        this.longest[c - 1] = micros(step.longestHold);
        return this.add('holds', { c });
      case 'over':
        call.overAt = this.now.at;
        call.isPausing = true;
        return this.add('over', { c });
      case 'leaves':
        return this.add('leaves', { c });
      case 'unspecified':
        this.isSpecified = false;
    }
  }

  private comes(process: string, { caller, keys }: Extract<SeveralStep, { what: 'comes' }>): void {
    if (!keys.some((key) => this.keys.includes(key))) return;
    if (!keys.every((key) => this.keys.includes(key))) this.isSpecified = false;
    const c = this.callers.push(this.processNumber(process));
    this.wants.push(keys.map((key) => this.nameOf(key)));
    this.longest.push(0);
    const isNew = {
      isHolding: false,
      isPausing: false,
      overAt: undefined,
      passesOn: new Set<string>(),
      has: new Set<string>(),
    };
    this.known.set(caller, { c, keys, ...isNew });
    this.add('comes', { c });
  }

  private got(call: Call, { key, owner }: Extract<SeveralStep, { what: 'got' | 'gives' }>): void {
    const { c, keys, has, isHolding, passesOn } = call;
    this.callOf.set(owner, call);
    this.add('got', { c, n: this.nameOf(key), o: this.owner(owner) });
    const next = [...keys].sort().find((one) => !has.has(one));
    if (isHolding && (key !== next || call.isPausing)) passesOn.add(key);
    else has.add(key);
  }

  protected override recorded(event: TracedEvent & { kind: 'record' }): void {
    const { record } = event;
    if (record.kind === 'sent' && record.locks.length > 1) return void this.sizes.set(record.call, record.locks.length);
    if (record.kind === 'granted' && this.keys.includes(record.lock)) this.granted(record.call, record.owner, event);
    const leased = 'call' in record ? this.leased.get(record.call) : undefined;
    if (leased === undefined) return super.recorded(event);
    const { alone } = leased;
    const { c, keys } = leased.call;
    switch (record.kind) {
      case 'confirmed': {
        const until = this.local(record.process, record.validUntil);
        if (until !== leased.until) this.add('confirms', { c, until, alone });
        leased.until = until;
        return;
      }
      case 'release-asked':
        return this.add('ends', { c });
      case 'lost':
        if (keys.includes(record.lock)) this.add('loses', { c, n: this.nameOf(record.lock) });
    }
  }

  private granted(name: string, owner: string, { record }: TracedEvent & { kind: 'record' }): void {
    const call = this.callOf.get(owner);
    if (record.kind !== 'granted' || call === undefined || this.isAlone(name) || this.leased.has(name)) return;
    const until = this.local(record.process, record.validUntil as number);
    const alone = this.sizes.get(name) === call.keys.length;
    this.leased.set(name, { call, alone, until });
    this.add('begins', { c: call.c, until, alone });
  }

  private nameOf(key: string): number {
    return this.keys.indexOf(key) + 1;
  }
}
