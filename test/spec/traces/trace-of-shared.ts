import type { HeldType } from '../../../lib/backends/lock-backend.js';
import { isReadWrite } from '../../../lib/backends/lock-requests.js';
import type { Subject } from '../../chaos/simulation/simulated/link-trace.js';
import type { SimulationTrace, TracedEvent, TracedRequest } from '../../chaos/simulation/simulation-trace.js';
import { type Fields, grantLeaseOf, NumberedProjection, succeeded } from './projection.js';
import { type Field, micros, type Step, serverTime } from './steps.js';

/** How an owner holds a lock that several may hold. */
type Side = 'read' | 'write' | 'place';

/** The steps of one lock that several owners may hold, as `TraceRequests.tla` reads them. */
export interface SharedTrace {
  readonly name: string;
  /** The process of each owner, by the owner's number. */
  readonly processes: readonly number[];
  /** How many may hold the lock according to each owner; 0: it is not such a lock. */
  readonly limits: readonly number[];
  readonly steps: readonly Step[];
}

export type About = Extract<Subject, { readonly key: string; readonly owner: string }>;

/** The read/write locks of a simulation, or those that n may hold. */
export function sharedLocks({ events }: SimulationTrace, type: 'read' | 'permits'): readonly string[] {
  const keys = new Set<string>();
  const others = new Set<string>();
  for (const event of events) {
    if (event.kind !== 'sent') continue;
    const { subject } = event.request;
    if (subject.kind === 'acquire-all') for (const key of subject.keys) others.add(key);
    if (subject.kind !== 'acquire') continue;
    const isWanted = type === 'read' ? isReadWrite(subject.type) : subject.type === type;
    (isWanted ? keys : others).add(subject.key);
  }
  return [...keys].filter((key) => !others.has(key));
}

/**
 * The steps of one such lock; undefined where they are not in the specification: leases that are extended or become
 * shorter, forced releases, lost data, and clocks that are set.
 */
export function traceOfShared(trace: SimulationTrace, key: string, name: string): SharedTrace | undefined {
  return trace.isSpecified ? new SharedProjection(trace, [key]).trace(name) : undefined;
}

/** The steps of all requests for some locks, and of the calls for one of them. */
export class SharedProjection extends NumberedProjection {
  private readonly limits: number[] = [];
  private readonly messages = new Map<number, Fields>();
  private readonly leases = new Map<string, number>();
  private readonly calls = new Map<string, { readonly call: number; readonly alone: boolean; until?: number }>();
  /** When the latest lease ends that was granted to a place in the line of each lock, by the server's clock. */
  protected readonly grantedUntil = new Map<string, number>();
  protected now!: TracedEvent;
  protected isSpecified = true;

  constructor(
    protected readonly source: SimulationTrace,
    protected readonly keys: readonly string[],
  ) {
    super(source.rates);
  }

  trace(name: string): SharedTrace | undefined {
    for (const event of this.source.events) {
      this.now = event;
      this.read(event);
    }
    this.add('finish', {});
    const { limits, steps } = this;
    return this.isSpecified ? { name, processes: this.processesOfOwners(), limits, steps } : undefined;
  }

  protected override processOf(owner: string): string {
    return this.source.processOf(owner);
  }

  private read(event: TracedEvent): void {
    switch (event.kind) {
      case 'sent':
        return this.sent(event.request);
      case 'data-lost':
        this.isSpecified = false;
        return;
      case 'record':
        return this.recorded(event);
      case 'of-several':
        return this.ofSeveral(event);
      case 'granted-in-line':
        this.grantedUntil.set(event.key, event.until);
        return;
      case 'told-in-line':
      case 'believed':
        return;
    }
    const message = this.messages.get(event.request.id);
    const { id, subject } = event.request;
    if (subject.kind === 'force' && this.keys.includes(subject.key)) this.isSpecified = false;
    if (message === undefined) return;
    switch (event.kind) {
      case 'executed':
        return this.executed(event);
      case 'answered':
        return this.add('read', { id, copy: event.request.read ?? 1, ok: succeeded(subject, event.reply) });
      default:
        this.onTheWay(event, message);
        if (event.kind === 'failed') this.failed(event.request, event.outcome);
    }
  }

  /** What a call for several locks does: it is not in the traces of one lock. */
  protected ofSeveral(_event: TracedEvent & { kind: 'of-several' }): void {}

  protected failed(_request: TracedRequest, _outcome: 'refused' | 'unknown'): void {}

  /** What the traces of several locks have in addition. */
  protected more(_subject: Extract<Subject, { readonly key: string }>): Readonly<Record<string, Field>> {
    return {};
  }

  private sent({ id, process, subject, validUntil }: TracedRequest): void {
    if (!('key' in subject) || !this.keys.includes(subject.key) || subject.kind === 'force') return;
    const p = this.processNumber(process);
    const sent = this.local(process, this.now.at);
    const none = { o: 0, from: 0, owners: [], side: 'place', lease: 0, waits: 0, past: false, terms: 0 };
    const message = {
      id,
      p,
      sent,
      kind: subject.kind,
      ...none,
      ...this.contentOf(subject),
      deadline: 0,
      ...this.more(subject),
    };
    const takes = subject.kind === 'acquire' || subject.kind === 'transfer';
    if (takes) message.deadline = validUntil === undefined ? 2 ** 31 - 1 : serverTime(validUntil);
    this.messages.set(id, message);
    this.add('send', message);
  }

  private contentOf(subject: Extract<Subject, { readonly key: string }>) {
    switch (subject.kind) {
      case 'acquire': {
        const o = this.owner(subject.owner, subject.permits);
        const { waiterTimeout, pastLine } = subject;
        return {
          o,
          ...this.lease(o, subject),
          waits: micros(waiterTimeout),
          past: pastLine,
          terms: grantLeaseOf(subject),
        };
      }
      case 'transfer': {
        if (subject.type === 'read') this.isSpecified = false;
        const from = this.owner(subject.from);
        const o = this.owner(subject.owner, this.limits[from - 1]);
        return { o, from, ...this.lease(o, subject) };
      }
      case 'renew': {
        const o = this.owner(subject.owner);
        return { o, ...this.lease(o, subject) };
      }
      case 'release':
        return { o: this.owner(subject.owner), side: sideOf(subject.type) };
      case 'keep':
        return { owners: subject.owners.map((owner) => this.owner(owner)), waits: micros(subject.waiterTimeout) };
      case 'leave':
        return { o: this.owner(subject.owner) };
    }
    return {};
  }

  private lease(o: number, { type, leaseTime }: { readonly type: HeldType; readonly leaseTime: number }) {
    const side = sideOf(type);
    const lease = micros(leaseTime);
    const held = `${o} ${side}`;
    if ((this.leases.get(held) ?? lease) !== lease) this.isSpecified = false;
    this.leases.set(held, lease);
    return { side, lease };
  }

  protected executed({ request, copy, reply, lock }: TracedEvent & { kind: 'executed' }): void {
    const { id, subject } = request;
    const holders = lock.holders.map((owner) => this.owner(owner));
    const line = lock.line.map((owner) => this.owner(owner));
    const listening = lock.listening.map((process) => this.processNumber(process));
    const kept = subject.kind === 'keep' ? (reply as readonly boolean[]).map(Number) : [];
    this.add('execute', { id, copy, ok: succeeded(subject, reply), mode: lock.mode, holders, line, listening, kept });
    if (request.read !== copy) this.add('unread', { id, copy });
  }

  protected recorded({ record }: TracedEvent & { kind: 'record' }): void {
    if (record.kind === 'crashed') return this.add('crash', { p: this.processNumber(record.process) });
    if (record.kind === 'sent' && record.locks.some((lock) => this.keys.includes(lock)))
      this.calls.set(record.call, { call: this.calls.size + 1, alone: record.locks.length === 1 });
    if (!('call' in record)) return;
    const known = this.calls.get(record.call);
    if (known === undefined) return;
    const { call, alone } = known;
    if (record.kind === 'granted' && this.keys.includes(record.lock)) {
      known.until = this.local(record.process, record.validUntil as number);
      const o = this.owner(record.owner);
      const side = sideOf(record.type as HeldType);
      this.add('begin', { call, o, side, until: known.until, alone, within: record.within !== undefined });
    }
    if (known.until === undefined) return;
    if (record.kind === 'confirmed') {
      const until = this.local(record.process, record.validUntil);
      if (known.until !== until) this.add('confirm', { call, until, alone });
      known.until = until;
    }
    if (record.kind === 'release-asked') this.add('end', { call });
    if (record.kind === 'lost' && this.keys.includes(record.lock)) this.add('lost', { call });
  }

  /** Whether the call wants one lock alone. */
  protected isAlone(call: string): boolean {
    return this.calls.get(call)?.alone ?? false;
  }

  /** @param limit how many may hold the lock according to this owner */
  protected override owner(id: string, limit = 0): number {
    const number = super.owner(id);
    this.limits[number - 1] = Math.max(this.limits[number - 1] ?? 0, limit);
    return number;
  }

  protected add(e: string, fields: Fields): void {
    const { at, server } = this.now;
    this.steps.push({ e, t: serverTime(server), cl: this.clocksAt(at), ...fields });
  }
}

function sideOf(type: HeldType): Side {
  return isReadWrite(type) ? (type as 'read' | 'write') : 'place';
}
