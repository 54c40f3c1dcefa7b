import { clientOf } from '../../../lib/backends/owner-ids.js';
import type { TracedRequest } from '../../chaos/simulation/simulation-trace.js';
import { drawnBy, type Fields, NumberedProjection, succeeded, tokenOf } from './projection.js';
import { type QuorumEvent, type QuorumKind, QuorumSchedule } from './quorum-schedule.js';
import { EPOCH, micros, type Step, serverTime } from './steps.js';

/** The steps of a lock on several nodes, as `TraceQuorum.tla` reads them. */
export interface QuorumTrace {
  readonly name: string;
  /** The process of each owner, by the owner's number. */
  readonly processes: readonly number[];
  readonly steps: readonly Step[];
}

type NodeEvent = QuorumEvent & { readonly request: TracedRequest };

/** Undefined where tokens were reserved, or the lock was handed over in a process: neither is in the specification. */
export async function traceOfQuorum(seed: number, kind: QuorumKind, name: string): Promise<QuorumTrace | undefined> {
  const schedule = new QuorumSchedule(seed, kind);
  await schedule.run();
  return new QuorumProjection(schedule).trace(name);
}

class QuorumProjection extends NumberedProjection {
  private readonly messages = new Map<TracedRequest, Fields>();
  /** The owner for which each process asks now. Raises do not name it. */
  private readonly askers = new Map<string, string>();
  private readonly calls = new Map<string, { readonly o: number; until: number }>();
  private now!: Pick<QuorumEvent, 'at'>;
  private isSpecified = true;

  constructor(private readonly schedule: QuorumSchedule) {
    super(schedule.rates);
  }

  trace(name: string): QuorumTrace | undefined {
    this.now = { at: 0 };
    this.add('start', {});
    for (const event of this.schedule.events) {
      this.now = event;
      this.read(event);
    }
    // The leases of processes that died have ended.
    this.now = { at: this.schedule.now };
    this.add('finish', {});
    return this.isSpecified ? { name, processes: this.processesOfOwners(), steps: this.steps } : undefined;
  }

  protected override processOf(owner: string): string {
    return clientOf(owner);
  }

  private read(event: QuorumEvent): void {
    switch (event.kind) {
      case 'asks':
        this.askers.set(event.process, event.owner);
        return this.add('asks', { o: this.owner(event.owner), lease: micros(event.leaseTime) });
      case 'renews':
        return this.add('renews', { o: this.owner(event.owner), round: event.round });
      case 'succeeds':
      case 'fails':
        return this.add(event.kind, { o: this.owner(event.owner) });
      case 'data-lost':
        return this.add('forget', { n: (event.node as number) + 1 });
      case 'record':
        return this.recorded(event);
      case 'sent':
        return this.sent(event);
      case 'of-several':
      case 'granted-in-line':
      case 'told-in-line':
      case 'believed':
        return;
    }
    const message = this.messages.get(event.request);
    if (message === undefined) return;
    switch (event.kind) {
      case 'executed':
        return this.executed(event, message);
      case 'answered':
        return this.add('read', { id: message.id, copy: event.request.read ?? 1 });
      default:
        this.onTheWay(event, message);
    }
  }

  private sent({ request, node, round }: NodeEvent & { kind: 'sent' }): void {
    const { process, subject, validUntil } = request;
    const { kind } = subject;
    if (kind !== 'acquire' && kind !== 'renew' && kind !== 'release' && kind !== 'raise') {
      this.isSpecified = false;
      return;
    }
    const owner = kind === 'raise' ? (this.askers.get(process) as string) : subject.owner;
    const message = {
      id: this.messages.size + 1,
      p: this.processNumber(process),
      n: (node as number) + 1,
      kind,
      o: this.owner(owner),
      lease: kind === 'acquire' || kind === 'renew' ? micros(subject.leaseTime) : 0,
      deadline: validUntil === undefined ? 0 : serverTime(validUntil),
      round: round ?? 0,
      ...(kind === 'raise' && { token: tokenOf(subject.token) }),
    };
    this.messages.set(request, message);
    this.add('send', message);
  }

  private executed(event: NodeEvent & { kind: 'executed' }, { id }: Fields): void {
    const { request, copy, reply, lock, clock, draw } = event;
    if (draw.reserve > 0) this.isSpecified = false;
    const holders = lock.holders.map((owner) => this.owner(owner));
    const ok = succeeded(request.subject, reply);
    const token = request.subject.kind === 'acquire' && ok && drawnBy(reply, draw);
    this.add('execute', { id, copy, ok, ...token, clock: tokenOf(clock), holders });
    if (request.read !== copy) this.add('unread', { id, copy });
  }

  private recorded({ record }: QuorumEvent & { kind: 'record' }): void {
    if (record.kind === 'crashed') return this.add('crash', { p: this.processNumber(record.process) });
    if (record.kind === 'granted') {
      const o = this.owner(record.owner);
      const until = this.local(record.process, record.validUntil as number);
      this.calls.set(record.call, { o, until });
      return this.add('begin', { o, until, token: tokenOf(record.token as number) });
    }
    const known = 'call' in record ? this.calls.get(record.call) : undefined;
    if (known === undefined) return;
    const { o } = known;
    if (record.kind === 'confirmed') {
      const until = this.local(record.process, record.validUntil);
      // But for the rounding of numbers, a lease that was not renewed ends when it did.
      if (Math.abs(known.until - until) > 2) this.add('confirm', { o, until });
      known.until = until;
    }
    if (record.kind === 'release-asked') this.add('end', { o });
    if (record.kind === 'lost') this.add('lost', { o });
  }

  /** `nt`: what the clocks of the nodes show. */
  protected add(e: string, fields: Fields): void {
    const { at } = this.now;
    const cl = this.clocksAt(at);
    const nt = this.schedule.clocks.map(({ rate, ahead }) => serverTime(EPOCH + at * rate + ahead));
    this.steps.push({ e, t: micros(at), cl, nt, ...fields });
  }
}
