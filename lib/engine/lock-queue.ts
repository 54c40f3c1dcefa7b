import type { AcquireReply, AcquireRequest, BackendError, Busy, LockType } from '../backends/lock-backend.js';
import { Contention } from './contention.js';
import type { EngineParts } from './engine-parts.js';
import { LockBusyError, LockKeyError, LockUnavailableError } from './errors.js';
import { HandOff, type Tenure } from './hand-off.js';
import { HeldLock, type LockKeeper, type ReleaseOutcome } from './held-lock.js';
import { type Moment, validity } from './lease-clock.js';
import type { AcquisitionTerms } from './lock-options.js';
import { QueuePatience } from './queue-patience.js';
import type { Departure, Waiter } from './waiter.js';
import { WaiterQueue } from './waiter-queue.js';

const HANDED_ON: Promise<ReleaseOutcome> = Promise.resolve('released');

/**
 * All that one process does about one lock: its callers stand in line, only the head contends in the backend (adjacent readers
 * together), and a lock that is given back goes to the next in line while the budget of {@link HandOff} lasts.
 */
export class LockQueue implements LockKeeper {
  private readonly waiting = new WaiterQueue();
  private readonly holders: HeldLock[] = [];
  private readonly handOff = new HandOff();
  private readonly contention: Contention;
  private readonly patience: QueuePatience;
  /** Acquisitions, and releases or passes, whose answer is awaited. */
  private attempts = 0;
  private departures = 0;
  /** A several-lock acquisition has the queue to itself for one attempt. */
  private claimed = false;
  private seen: Busy | undefined;
  private failure: BackendError | undefined;

  constructor(
    private readonly parts: EngineParts,
    private readonly key: string,
    type: LockType,
    private readonly retire: () => void,
  ) {
    const { backend, runtime, clientId } = parts;
    this.contention = new Contention(backend, runtime, key, type, clientId, () => this.pump());
    this.patience = new QueuePatience(parts, this.waiting, () => this.holder);
  }

  enqueue(waiter: Waiter): void {
    if (waiter.triesOnce && this.isBusyFor(waiter)) {
      waiter.refuse(this.busyError(waiter));
      return this.retireIfIdle();
    }
    this.waiting.push(waiter);
    waiter.watch((departure) => this.depart(waiter, departure));
    if (waiter.settled) return;
    if (this.waiting.length === 1 && !waiter.triesOnce) this.contention.arrive(waiter.patience);
    if (this.waiting.length > 1 || this.holders.length > 0) this.patience.watch();
    this.pump();
  }

  /** Shutdown: sends away who waits, but for callers that need this lock to end. */
  expel(error: Error): void {
    for (const waiter of this.waiting) {
      if (waiter.scoped) continue;
      this.depart(waiter, 'refused');
      waiter.refuse(error);
    }
  }

  /** Takes the whole queue for one attempt from outside, if nothing goes on in it. */
  claim(): boolean {
    if (this.holders.length + this.waiting.length + this.attempts + this.departures > 0 || this.claimed) return false;
    this.claimed = true;
    return true;
  }

  /** Ends a {@link claim} that acquired nothing. */
  unclaim(): void {
    this.claimed = false;
    this.pump();
    this.retireIfIdle();
  }

  /** Ends a {@link claim} that acquired the lock. */
  fulfil(name: string, owner: string, terms: AcquisitionTerms, sent: Moment, token: number): HeldLock {
    this.claimed = false;
    const tenure = { since: this.parts.runtime.monotonic(), asked: 0, tokensLeft: 0 };
    const held = new HeldLock(
      this,
      name,
      this.key,
      terms.type,
      owner,
      terms.leaseTime,
      terms.fixed,
      sent,
      token,
      tenure,
    );
    this.hold(held);
    this.pump();
    return held;
  }

  giveBack(held: HeldLock): Promise<ReleaseOutcome> {
    if (held.lost !== undefined) {
      this.parts.orphans.giveBack(held, held.leaseTime);
      return Promise.resolve('gone');
    }
    const next = this.waiting.first;
    if (next === undefined) return this.release(held);
    const route = this.handOff.route(held, next, this.parts.clock, this.parts.runtime.monotonic());
    if (route === 'release') return this.release(held);
    if (route === 'pass') return this.pass(held, next);
    if (this.handOff.takesBreath()) this.parts.runtime.nextTurn(() => this.handOnAfterBreath(held));
    else this.handOn(held, next);
    return HANDED_ON;
  }

  forget(held: HeldLock): void {
    this.drop(held);
    this.pump();
    this.retireIfIdle();
  }

  lost(held: HeldLock): void {
    this.forget(held);
    if (held.shares.length === 0) this.parts.orphans.giveBack(held, held.leaseTime);
    else this.parts.events.emit('lost', { name: held.name, owner: held.owner, error: held.lost as Error });
  }

  /** Callers of this process that wait. */
  get length(): number {
    return this.waiting.length;
  }

  // ── Contending ───────────────────────────────────────────────────────────────────────────────────────────────────────

  private pump(): void {
    if (this.claimed || this.departures > 0 || this.contention.resting) return;
    const head = this.waiting.first;
    if (head === undefined || !this.admits(head)) return;
    if (head.terms.type !== 'read') {
      if (this.attempts === 0) this.attempt(head);
      return;
    }
    for (const reader of this.waiting) {
      if (reader.terms.type !== 'read') return;
      if (reader.sent === undefined) this.attempt(reader);
    }
  }

  private attempt(waiter: Waiter): void {
    waiter.sent = this.parts.clock.now();
    this.attempts++;
    this.contention.begin();
    const request = this.request(waiter);
    this.parts.backend.acquire(request).then(
      (reply) => this.answered(waiter, reply, request.reserve),
      (error) => this.failed(waiter, error),
    );
  }

  private request(waiter: Waiter): AcquireRequest {
    const { type, leaseTime } = waiter.terms;
    return {
      key: this.key,
      type,
      owner: waiter.owner,
      leaseTime,
      reserve: type === 'read' ? 0 : this.handOff.reserve(this.waiting.length - 1),
      placeTimeout: type === 'write' && !waiter.triesOnce ? this.parts.placeTimeout : 0,
      preferWriters: this.parts.preferWriters,
    };
  }

  private answered(waiter: Waiter, reply: AcquireReply, asked: number): void {
    const sent = waiter.sent as Moment;
    waiter.sent = undefined;
    this.attempts--;
    this.failure = undefined;
    if (!reply.acquired) return this.foundBusy(waiter, reply);
    if (this.parts.clock.age(sent) >= validity(waiter.terms.leaseTime)) return this.answeredTooLate(waiter);
    waiter.unsettled = false;
    this.contention.acquired();
    const tenure = { since: this.parts.runtime.monotonic(), asked, tokensLeft: reply.reserved };
    const held = this.heldBy(waiter, sent, reply.token, tenure);
    this.hold(held);
    if (this.waiting.remove(waiter)) waiter.grant(held);
    else void this.giveBack(held);
    this.pump();
  }

  private foundBusy(waiter: Waiter, reply: Busy): void {
    this.seen = reply;
    waiter.unsettled = false;
    if (waiter.settled) this.leavePlace(waiter);
    for (const trier of this.waiting) {
      if (trier.triesOnce && trier.sent === undefined && this.waiting.remove(trier))
        trier.refuse(this.busyError(trier));
    }
    if (this.waiting.length > 0) {
      this.contention.busy(reply.remaining);
      this.patience.watch();
    }
    this.pump();
    this.retireIfIdle();
  }

  private answeredTooLate(waiter: Waiter): void {
    this.failed(
      waiter,
      Object.assign(new Error(`the answer came after the lease of ${waiter.terms.leaseTime} ms had ended`), {
        kind: 'unavailable',
        outcome: 'unknown',
      } as const),
    );
  }

  private failed(waiter: Waiter, error: Error & Pick<BackendError, 'kind' | 'outcome'>): void {
    waiter.sent = undefined;
    this.attempts--;
    this.failure = error as BackendError;
    if (error.outcome !== 'refused') waiter.unsettled = true;
    if (waiter.settled) this.settleOrphan(waiter);
    else if (error.kind !== 'unavailable') this.dismiss(waiter, this.refusal(waiter, error));
    for (const trier of this.waiting)
      if (trier.triesOnce && trier.sent === undefined) this.dismiss(trier, this.unavailableError(trier));
    if (this.waiting.length > 0 && error.kind === 'unavailable') {
      if (this.contention.failed())
        this.parts.events.emit('error', this.unavailableError(this.waiting.first as Waiter));
    }
    this.pump();
    this.retireIfIdle();
  }

  private heldBy(waiter: Waiter, sent: Moment, token: number, tenure: Tenure): HeldLock {
    const { type, leaseTime, fixed } = waiter.terms;
    return new HeldLock(this, waiter.name, this.key, type, waiter.owner, leaseTime, fixed, sent, token, tenure);
  }

  private hold(held: HeldLock): void {
    this.holders.push(held);
    this.parts.watchdog.guard(held);
    if (held.type === 'read') return;
    for (const trier of this.waiting) {
      if (trier.triesOnce && trier.sent === undefined && this.waiting.remove(trier))
        trier.refuse(this.busyError(trier));
    }
  }

  private drop(held: HeldLock): void {
    this.parts.watchdog.drop(held);
    const at = this.holders.indexOf(held);
    if (at >= 0) this.holders.splice(at, 1);
  }

  // ── Giving back ──────────────────────────────────────────────────────────────────────────────────────────────────────

  private handOn(held: HeldLock, next: Waiter): void {
    held.token++;
    held.tenure.tokensLeft--;
    this.waiting.remove(next);
    this.announce(held);
    next.grant(held);
  }

  private handOnAfterBreath(held: HeldLock): void {
    const next = this.waiting.first;
    if (held.lost !== undefined) return;
    if (
      next !== undefined &&
      this.handOff.route(held, next, this.parts.clock, this.parts.runtime.monotonic()) === 'local'
    )
      this.handOn(held, next);
    else void this.giveBack(held);
  }

  private pass(held: HeldLock, next: Waiter): Promise<ReleaseOutcome> {
    this.drop(held);
    this.departures++;
    const { type, leaseTime } = next.terms;
    const reserve = this.handOff.reserve(this.waiting.length - 1);
    next.sent = this.parts.clock.now();
    const request = { key: this.key, type, from: held.owner, to: next.owner, leaseTime, reserve };
    return this.parts.backend.pass(request).then(
      (reply) => {
        this.departures--;
        const sent = next.sent as Moment;
        next.sent = undefined;
        if (reply === undefined) {
          this.pump();
          this.retireIfIdle();
          return 'gone';
        }
        const heir = this.heldBy(next, sent, reply.token, {
          since: held.tenure.since,
          asked: reserve,
          tokensLeft: reply.reserved,
        });
        this.hold(heir);
        this.announce(heir);
        if (this.waiting.remove(next)) next.grant(heir);
        else void this.giveBack(heir);
        return 'released';
      },
      () => {
        this.departures--;
        next.sent = undefined;
        next.unsettled = true;
        if (next.settled) this.settleOrphan(next);
        return this.abandon(held);
      },
    );
  }

  private release(held: HeldLock): Promise<ReleaseOutcome> {
    const { clock } = this.parts;
    this.drop(held);
    this.departures++;
    if (held.type !== 'read') this.contention.releasing();
    return this.parts.backend.release(held).then(
      (reply) => {
        this.departures--;
        if (!reply.released) this.contention.releasedSilently();
        else if (held.type !== 'read') this.contention.yieldTo(reply.listeners, this.waiting.length > 0);
        this.pump();
        this.retireIfIdle();
        const twice = reply.resent && clock.age(held.confirmed) < validity(held.validFor);
        return reply.released || twice ? 'released' : 'gone';
      },
      () => {
        this.departures--;
        return this.abandon(held);
      },
    );
  }

  /** The backend did not say whether it is free: see to it in the background, and go on. */
  private abandon(held: HeldLock): ReleaseOutcome {
    this.parts.orphans.giveBack(held, held.validFor);
    this.pump();
    this.retireIfIdle();
    return 'unreachable';
  }

  private announce({ name, owner, token }: HeldLock): void {
    if (this.parts.events.hears('handoff')) this.parts.events.emit('handoff', { name, owner, fencingToken: token });
  }

  // ── Leaving ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  private depart(waiter: Waiter, departure: Departure): Error {
    const error =
      departure === 'abort'
        ? ABORTED
        : this.failure !== undefined || this.awaitsFirstAnswer(waiter)
          ? this.unavailableError(waiter)
          : this.busyError(waiter);
    this.waiting.remove(waiter);
    if (waiter.sent === undefined) {
      this.settleOrphan(waiter);
      this.leavePlace(waiter);
    }
    if (this.waiting.length === 0) this.contention.calm();
    this.parts.runtime.detached(() => this.pump());
    this.retireIfIdle();
    return error;
  }

  /** Takes a waiter out whose caller is told why. */
  private dismiss(waiter: Waiter, error: Error): void {
    this.waiting.remove(waiter);
    this.settleOrphan(waiter);
    waiter.refuse(error);
  }

  private settleOrphan(waiter: Waiter): void {
    if (!waiter.unsettled) return;
    waiter.unsettled = false;
    const { type, leaseTime } = waiter.terms;
    this.parts.orphans.giveBack({ key: this.key, type, owner: waiter.owner }, leaseTime);
  }

  private leavePlace(waiter: Waiter): void {
    const { type } = waiter.terms;
    if (type === 'write' && !waiter.triesOnce)
      this.parts.backend.leavePlace({ key: this.key, type, owner: waiter.owner }).catch(() => {});
  }

  private retireIfIdle(): void {
    if (this.holders.length + this.waiting.length + this.attempts + this.departures > 0 || this.claimed) return;
    if (this.contention.lingering > 0) return this.contention.afterLingering(() => this.retireIfIdle());
    this.contention.close();
    this.patience.close();
    this.retire();
  }

  // ── What a caller is told ────────────────────────────────────────────────────────────────────────────────────────────

  private admits(waiter: Waiter): boolean {
    return (
      this.holders.length === 0 || (waiter.terms.type === 'read' && this.holders.every((held) => held.type === 'read'))
    );
  }

  /** Whether a single try would fail, as far as this process knows. */
  private isBusyFor(waiter: Waiter): boolean {
    if (!this.admits(waiter)) return true;
    return this.waiting.length > 0 && (this.contention.resting || (this.attempts === 0 && !this.claimed));
  }

  private awaitsFirstAnswer(waiter: Waiter): boolean {
    return this.holders.length === 0 && this.seen === undefined && waiter.sent !== undefined;
  }

  private get holder(): string | undefined {
    return this.holders[0]?.owner ?? this.seen?.holder;
  }

  private remaining(): number {
    const held = this.holders[0];
    if (held === undefined) return this.seen?.remaining ?? -1;
    return Math.max(0, Math.round(held.validFor - this.parts.clock.age(held.confirmed)));
  }

  private busyError(waiter: Waiter): LockBusyError {
    const { holder } = this;
    const remaining = this.remaining();
    const { waitTime } = waiter.terms;
    if (this.parts.events.hears('busy'))
      this.parts.events.emit('busy', { name: waiter.name, remainingTime: remaining, holder });
    return new LockBusyError(
      `The lock '${waiter.name}' is busy${waitTime > 0 ? `: not free within ${waitTime} ms` : ''}; held by ${holder ?? 'another owner'}${this.holders.length > 0 ? ' (this process)' : ''}${remaining >= 0 ? `, its lease ends in ${remaining} ms unless renewed` : ''}`,
      waiter.name,
      remaining,
      holder,
    );
  }

  private unavailableError(waiter: Waiter): LockUnavailableError {
    const cause = this.failure;
    return new LockUnavailableError(
      `The lock '${waiter.name}' could not be acquired: ${cause?.message ?? `${this.parts.backend.description} gave no answer within ${waiter.terms.waitTime} ms`}`,
      waiter.name,
      { cause },
    );
  }

  private refusal(waiter: Waiter, error: Error & Pick<BackendError, 'kind'>): Error {
    if (error.kind === 'denied') return this.unavailableError(waiter);
    return new LockKeyError(`The lock '${waiter.name}' cannot be used: ${error.message}`, waiter.name, {
      cause: error,
    });
  }
}

const ABORTED = new Error('aborted');
