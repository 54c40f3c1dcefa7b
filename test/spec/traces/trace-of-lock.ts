import { numberOf } from '../../../lib/backends/owner-ids.js';
import type { Subject } from '../../chaos/simulation/simulated/link-trace.js';
import type {
  SimulationTrace,
  TokenDraw,
  TracedEvent,
  TracedRequest,
} from '../../chaos/simulation/simulation-trace.js';
import { drawnBy, type Fields, grantLeaseOf, Projection, succeeded, tokenOf } from './projection.js';
import { type OwnerId, type Step, serverTime } from './steps.js';

export interface LockTrace {
  readonly name: string;
  readonly owners: readonly OwnerId[];
  readonly steps: readonly Step[];
}

const NOBODY: OwnerId = [0, 0, 0];

/**
 * The steps of one lock, as `Trace.tla` reads them; undefined where they are not in the specification: locks that are
 * acquired together, leases that are extended or kept (`holdAtLeast`), and a server whose clock is set.
 */
export function traceOfLock(trace: SimulationTrace, key: string, name: string): LockTrace | undefined {
  return trace.isSpecified ? new LockProjection(trace, key).trace(name) : undefined;
}

/** The locks whose steps are worth a trace: exclusive ones, that were acquired alone. */
export function tracedLocks({ events }: SimulationTrace): readonly string[] {
  const keys = new Set<string>();
  const others = new Set<string>();
  for (const event of events) {
    if (event.kind !== 'sent') continue;
    const { subject } = event.request;
    if (subject.kind === 'acquire-all') for (const key of subject.keys) others.add(key);
    if (subject.kind !== 'acquire') continue;
    if (subject.type === 'reentrant') keys.add(subject.key);
    else others.add(subject.key);
  }
  return [...keys].filter((key) => !others.has(key));
}

type GrantedInLine = TracedEvent & { readonly kind: 'granted-in-line' };

class LockProjection extends Projection {
  private readonly owners = new Map<string, OwnerId>();
  private readonly sentAt = new Map<number, number>();
  private readonly ownerOfCall = new Map<string, string>();
  private readonly told = new Map<string, number>();
  private readonly locksOfCall = new Map<string, number>();
  private readonly leases = new Map<string, number>();
  /** The owners that have asked for a place in the line. */
  private readonly placed = new Set<string>();
  private readonly nonces: string[] = [];
  /** The highest token that the process of each owner had seen when it made its place. */
  private readonly seenOf = new Map<string, number>();
  private readonly drawn = new Set<TokenDraw>();
  /** What the server has granted while it executes a request, and whom it has told that the lock is free. */
  private grants: readonly GrantedInLine[] = [];
  private toldInLine: readonly string[] = [];
  private now!: TracedEvent;
  private lastClock = 0;
  private isSpecified = true;

  constructor(
    private readonly source: SimulationTrace,
    private readonly key: string,
  ) {
    super(source.rates);
  }

  trace(name: string): LockTrace | undefined {
    for (const event of this.source.events) {
      this.now = event;
      this.read(event);
    }
    this.add('finish', {});
    return this.isSpecified ? { name, owners: [...this.owners.values()], steps: this.steps } : undefined;
  }

  private read(event: TracedEvent): void {
    switch (event.kind) {
      case 'sent':
        return this.sent(event.request);
      case 'executed':
        return this.executed(event);
      case 'late':
        return this.about(event.request, () => this.late(event));
      case 'request-lost':
        return this.about(event.request, () => this.add('lose', this.copyOf(event.request, event.copy)));
      case 'resent':
        return this.about(event.request, () => this.resent(event));
      case 'answered':
        return this.about(event.request, () => {
          const ok = succeeded(event.request.subject, event.reply);
          this.add('read', { ...this.copyOf(event.request, event.request.read ?? 1), ok });
        });
      case 'failed':
        return this.about(event.request, () => this.failed(event.request, event.outcome));
      case 'data-lost':
        this.lastClock = 0;
        return this.add('data lost', {});
      case 'granted-in-line':
        this.grants = [...this.grants, event];
        return;
      case 'told-in-line':
        if (event.key === this.key) this.toldInLine = [...this.toldInLine, event.owner];
        return;
      case 'believed':
        return this.believed(event);
      case 'record':
        return this.recorded(event);
    }
  }

  private sent(request: TracedRequest): void {
    const { subject, validUntil } = request;
    if (subject.kind === 'acquire-all' || subject.kind === 'force' || subject.key !== this.key) return;
    if (subject.kind === 'leave' || subject.kind === 'raise') return;
    if (subject.kind === 'keep') {
      for (const [n, owner] of subject.owners.entries())
        this.add('refresh', { o: this.owner(owner), nonce: this.nonceNumber(subject.nonces[n]) });
      return;
    }
    this.sentAt.set(request.id, this.clock(request.process));
    const o = this.owner(subject.owner);
    if (subject.kind === 'release') return this.add('release', { o, placed: this.placed.has(subject.owner) });
    if (subject.kind === 'acquire' && subject.waiterTimeout > 0) this.placed.add(subject.owner);
    const lease = subject.leaseTime * 1000;
    if (subject.kind === 'renew') {
      if (this.leases.get(subject.owner) !== lease) this.isSpecified = false;
      return this.add('renew', { o, lease });
    }
    this.leases.set(subject.owner, lease);
    // One that is never written has no deadline.
    const deadline = validUntil === undefined ? this.endOfWait : serverTime(validUntil);
    if (subject.kind === 'acquire')
      return this.add('acquire', { o, lease, deadline, nonce: this.nonceNumber(subject.nonce) });
    this.add('transfer', { o, from: this.owner(subject.from), lease, deadline });
  }

  /** By the server's clock. */
  private get endOfWait(): number {
    return serverTime(this.now.server + this.source.commandTimeout);
  }

  private late({ request, copy, answer }: TracedEvent & { kind: 'late' }): void {
    this.add('late', this.copyOf(request, copy));
    if (request.read !== copy && !answer.again) this.add('unread', this.copyOf(request, copy));
  }

  private resent({ request, copy, deadline, again }: TracedEvent & { kind: 'resent' }): void {
    const { subject } = request;
    const sent = { ...this.copyOf(request, copy), deadline: deadlineOf(subject, deadline) };
    if (again) return this.add('again', sent);
    const lease = 'leaseTime' in subject ? subject.leaseTime * 1000 : 0;
    const from = subject.kind === 'transfer' ? this.owner(subject.from) : sent.o;
    this.add('resend', { ...sent, from, lease });
  }

  private executed(event: TracedEvent & { kind: 'executed' }): void {
    const { subject } = event.request;
    const { grants, toldInLine } = this;
    this.grants = [];
    this.toldInLine = [];
    const asks = subject.kind === 'acquire';
    const listening = this.listeningIn(event);
    const told = toldInLine.map((owner) => this.owner(owner));
    for (const grant of grants) {
      // An acquisition finds the lock busy because it has just granted it.
      if (grant.key !== this.key) this.grantedOther(grant);
      else if (asks) this.granted(grant, listening);
    }
    this.executedStep(event, told);
    if (asks && !succeeded(subject, event.reply)) this.seenOf.set(subject.owner, tokenOf(event.seen));
    if (asks) return;
    for (const grant of grants) if (grant.key === this.key) this.granted(grant, listening);
    // Others tell that the lease has become shorter.
    if (told.length > 0 && SERVING.includes(subject.kind)) this.add('tell', { told, listening });
  }

  private granted(event: GrantedInLine, listening: readonly number[]): void {
    const { owner, grant } = event;
    const seen = this.seenOf.get(owner) ?? 0;
    const clock = tokenOf(event.clock);
    this.lastClock = clock;
    const nonce = this.nonceNumber(grant?.nonce);
    const said = grant === undefined ? 0 : grant.lease * 1000;
    const until = serverTime(event.until);
    this.add('grant', { o: this.owner(owner), seen, nonce, clock, said, until, listening });
  }

  /** The processes that listen for messages to their places. */
  private listeningIn({ lock }: TracedEvent & { kind: 'executed' }): readonly number[] {
    return lock.listening.map((process) => this.processNumber(process));
  }

  private grantedOther({ owner, grant, clock: token }: GrantedInLine): void {
    const seen = this.seenOf.get(owner) ?? 0;
    const clock = tokenOf(token);
    const before = this.lastClock;
    this.lastClock = clock;
    if (clock === before) return;
    // If the grant does not end at the new token clock, the clock is recorded without it.
    const isShared = grant !== undefined && tokenOf(grant.token) + grant.reserved === clock;
    if (isShared) this.otherGrant(seen, { reserve: grant.reserved, count: 1, first: grant.token }, clock);
    else this.otherGrant(seen, { reserve: 0, count: 1, first: token }, clock);
  }

  private believed(event: TracedEvent & { kind: 'believed' }): void {
    if (event.key !== this.key) return;
    const { owner, grant, wanted, until } = event;
    const lease = grant.lease * 1000;
    this.leases.set(owner, wanted * 1000);
    this.add('believe', {
      o: this.owner(owner),
      nonce: this.nonceNumber(grant.nonce),
      after: grant.after * 1000,
      token: tokenOf(grant.token),
      reserved: grant.reserved,
      lease,
      wanted: wanted * 1000,
      until: Math.round(until * 1000),
    });
  }

  /** 0: there is none. */
  private nonceNumber(nonce: string | undefined): number {
    if (nonce === undefined) return 0;
    const known = this.nonces.indexOf(nonce);
    return known < 0 ? this.nonces.push(nonce) : known + 1;
  }

  /** @param told those that it has told that the lock is free */
  private executedStep(event: TracedEvent & { kind: 'executed' }, told: readonly OwnerId[]): void {
    const { request, copy, reply, draw, clock: token } = event;
    const { subject } = request;
    const listening = this.listeningIn(event);
    if (subject.kind === 'leave') {
      if (subject.key === this.key) this.add('leave', { o: this.owner(subject.owner), listening });
      return;
    }
    if (subject.kind === 'keep') {
      const waits = subject.waiterTimeout * 1000;
      const kept = reply as readonly boolean[];
      if (subject.key === this.key)
        for (const [n, owner] of subject.owners.entries()) {
          const nonce = this.nonceNumber(subject.nonces[n]);
          this.add('keep', { o: this.owner(owner), waits, kept: kept[n], nonce, listening });
        }
      return;
    }
    if (subject.kind === 'force') {
      const [owner] = reply as readonly string[];
      if (subject.key === this.key && owner !== undefined) this.add('force', { o: this.owner(owner) });
      return;
    }
    if (TAKING.includes(subject.kind)) this.othersDraw(event);
    if (subject.kind === 'acquire-all' || subject.key !== this.key) return;
    const ok = succeeded(subject, reply);
    const taken = subject.kind === 'acquire' || subject.kind === 'transfer';
    const clock = tokenOf(token);
    this.add('execute', {
      ...this.copyOf(request, copy),
      ok,
      ...(taken && { seen: tokenOf(event.seen), clock }),
      ...(taken && ok && drawnBy(reply, draw)),
      ...(subject.kind === 'acquire' && { waits: subject.waiterTimeout * 1000, listening }),
      ...(subject.kind === 'acquire' && { nonce: this.nonceNumber(subject.nonce), terms: grantLeaseOf(subject) }),
      ...(subject.kind === 'acquire' && !ok && { reserve: draw.reserve, told, holder: this.holder(reply) }),
    });
    if (request.read !== copy) this.add('unread', this.copyOf(request, copy));
  }

  /** Others draw tokens from the clock that all share, with one script that may ask for several locks. */
  private othersDraw({ request, seen, draw, clock }: TracedEvent & { kind: 'executed' }): void {
    const before = this.lastClock;
    this.lastClock = tokenOf(clock);
    if (draw.keys.includes(this.key) || draw.keys.length === 0 || this.drawn.has(draw)) return;
    this.drawn.add(draw);
    const { subject } = request;
    const types = subject.kind === 'acquire-all' ? subject.types : 'type' in subject ? [subject.type] : [];
    if (!types.includes('fenced')) return this.otherGrant(tokenOf(seen), draw, this.lastClock);
    // A fenced lock has a clock of its own, which begins with a token of the one that all share.
    if (this.lastClock === before) return;
    if (draw.count > 1) this.isSpecified = false;
    this.otherGrant(tokenOf(seen), { reserve: 0, count: 1, first: clock }, this.lastClock);
  }

  private otherGrant(seen: number, draw: Omit<TokenDraw, 'keys'>, clock: number): void {
    const { reserve, count, first } = draw;
    this.add('other grant', { seen, reserve, count, token: tokenOf(first), clock });
  }

  private failed(request: TracedRequest, outcome: 'refused' | 'unknown'): void {
    const { subject } = request;
    if (outcome === 'refused' && request.late) return this.add('read', { ...this.copyOf(request, 1), ok: false });
    if (outcome === 'refused') return this.add('refused', this.copyOf(request, 1));
    if (subject.kind !== 'acquire' && subject.kind !== 'transfer') return;
    const { o, sent } = this.copyOf(request, 1);
    this.add('give up', { o, sent });
  }

  private recorded({ record }: TracedEvent & { kind: 'record' }): void {
    if (record.kind === 'crashed') return this.add('crash', { c: this.processNumber(record.process) });
    if (record.kind === 'granted' && record.lock === this.key) {
      this.ownerOfCall.set(record.call, record.owner);
      const until = this.local(record.process, record.validUntil as number);
      this.told.set(record.call, until);
      return this.add('begin', {
        call: record.call,
        o: this.owner(record.owner),
        token: tokenOf(record.token as number),
        until,
        alone: this.locksOfCall.get(record.call) === 1,
        within: record.within !== undefined,
      });
    }
    if (record.kind === 'sent') this.locksOfCall.set(record.call, record.locks.length);
    if (!('call' in record)) return;
    const owner = this.ownerOfCall.get(record.call);
    if (owner === undefined) return;
    const { call } = record;
    const o = this.owner(owner);
    if (record.kind === 'confirmed') {
      const until = this.local(record.process, record.validUntil);
      if (this.told.get(call) === until) return;
      this.told.set(call, until);
      return this.add('confirm', { call, o, until, alone: this.locksOfCall.get(call) === 1 });
    }
    if (record.kind === 'release-asked') this.add('end', { call, o, alone: this.locksOfCall.get(call) === 1 });
    if (record.kind === 'lost' && record.lock === this.key) this.add('lost', { call, o });
  }

  private about(request: TracedRequest, then: () => void): void {
    if (this.sentAt.has(request.id)) then();
  }

  private copyOf(request: TracedRequest, copy: number) {
    const { kind, owner } = request.subject as { kind: string; owner: string };
    return { kind, o: this.owner(owner), sent: this.sentAt.get(request.id) as number, copy };
  }

  private holder(reply: unknown): OwnerId {
    const { holder } = reply as { holder?: string };
    return holder === undefined ? NOBODY : this.owner(holder);
  }

  private owner(id: string): OwnerId {
    let owner = this.owners.get(id);
    if (owner === undefined) {
      owner = [this.processNumber(this.source.processOf(id)), numberOf(id), this.source.commandTimeout * 1000];
      this.owners.set(id, owner);
    }
    return owner;
  }

  private clock(process: string): number {
    return this.local(process, this.now.at);
  }

  protected add(e: string, fields: Fields): void {
    const { at, server } = this.now;
    this.steps.push({ e, t: serverTime(server), cl: this.clocksAt(at), ...fields });
  }
}

const TAKING: readonly Subject['kind'][] = ['acquire', 'transfer', 'acquire-all'];

/** The requests after which the server grants a free lock, or tells of it. */
const SERVING: readonly Subject['kind'][] = ['release', 'keep', 'leave', 'force'];

/** Of a copy. 0: it takes nothing, and has none. */
function deadlineOf({ kind }: Subject, deadline: number | undefined): number {
  return kind === 'acquire' || kind === 'transfer' ? serverTime(deadline as number) : 0;
}
