import { type AcquireReply, BackendError, type Busy, type LockType } from '../../backends/lock-backend.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import { LinkedQueue } from '../collections/linked-queue.js';
import type { LockBusyError, LockUnavailableError } from '../errors.js';
import { type RequestOutcome, unusedOwner } from '../lease/background-releases.js';
import { HeldLock, type LockKeeper, type ReleaseOutcome } from '../lease/held-lock.js';
import { type Moment, validity } from '../lease/lease-clock.js';
import type { AcquisitionTerms } from '../lock-options.js';
import { Contention } from '../waiting/contention.js';
import {
  busyError,
  type KnownHolder,
  permanentError,
  shutdownError,
  unavailableError,
} from '../waiting/wait-errors.js';
import type { Departure, Waiter } from '../waiting/waiter.js';
import { WaiterRequest } from '../waiting/waiter-request.js';
import type { AcquisitionQueue } from './acquisition-queue.js';
import { TokenBlock } from './hand-off.js';
import { type GivenBackTo, LockReleaser } from './lock-releaser.js';
import { LongWaitWarning } from './long-wait-warning.js';
import { WaiterHeartbeat } from './waiter-heartbeat.js';

const NO_MORE: readonly HeldLock[] = [];

/**
 * All that one process does about one lock: its callers stand in line, only the head contends in the backend (adjacent
 * readers together), and what is given back goes on by {@link LockReleaser}.
 */
export class LockQueue implements AcquisitionQueue, GivenBackTo {
  readonly waiting = new LinkedQueue<Waiter>();
  /** Releases and passes whose answer is awaited. */
  underWay = 0;
  private holder: HeldLock | undefined;
  /** Readers beside the holder. */
  private others: readonly HeldLock[] = NO_MORE;

  // Made when they are first needed: most locks are held by one caller whom nobody disturbs.
  contended: Contention | undefined;
  private departed: LockReleaser | undefined;
  private patience: LongWaitWarning | undefined;
  private places: WaiterHeartbeat | undefined;

  /** Acquisitions whose answer is awaited. */
  private attempts = 0;
  /** The latest of them. Who comes before it is sent is counted in: hand-offs need tokens. */
  private asking: WaiterRequest | undefined;
  /** A several-lock acquisition has the queue to itself for one attempt. */
  private claimed = false;
  /** Among those who wait are callers that try once: so that thousands who wait need not be looked through for none. */
  private tried = false;
  /** The last answer that spoke of another holder. */
  private seen: { readonly busy: Busy; readonly at: Moment } | undefined;
  private failure: BackendError | undefined;

  constructor(
    private readonly context: AcquisitionContext,
    readonly name: string,
    readonly key: string,
    readonly type: LockType,
  ) {}

  enqueue(waiter: Waiter): void {
    if (waiter.triesOnce && this.isBusyFor(waiter)) {
      waiter.refuse(this.refusal(waiter));
      return this.retireIfIdle();
    }
    this.waiting.push(waiter);
    this.tried ||= waiter.triesOnce;
    if (this.asking?.reserve === 0) this.asking.reserve = this.reserve;
    if (waiter.mayLeave) waiter.watch((departure) => this.depart(waiter, departure));
    if (this.waiting.length === 1 && !waiter.triesOnce) this.contended?.arrive(waiter.remainingWait);
    if (this.waiting.length > 1 || this.holder !== undefined) this.beImpatient();
    this.pump();
  }

  /** A waiter gets another owner whenever it is not known what the backend has done for its present one. */
  removed(): void {}

  rejectWaiters(whom: (waiter: Waiter) => boolean): void {
    for (const waiter of this.waiting) {
      if (whom(waiter)) this.dismiss(waiter, shutdownError('Waiting', waiter.name));
    }
  }

  dismiss(waiter: Waiter, error: Error): void {
    this.leave(waiter);
    waiter.refuse(error);
  }

  claim(): boolean {
    if (this.claimed || !this.idle) return false;
    this.claimed = true;
    return true;
  }

  unclaim(): void {
    this.claimed = false;
    this.resume();
  }

  fulfil(owner: string, terms: AcquisitionTerms, sent: Moment, token: number, keeper: LockKeeper = this): HeldLock {
    this.claimed = false;
    this.contended?.acquired();
    const { type, leaseTime, fixed } = terms;
    const now = this.context.clock.now();
    const since = Math.floor(now.monotonic);
    const held = new HeldLock(keeper, type, owner, leaseTime, fixed, sent, token, since);
    this.hold(held, now);
    this.pump();
    return held;
  }

  giveBack(held: HeldLock, now?: Moment): ReleaseOutcome | Promise<ReleaseOutcome> {
    held.downgrade?.abandon();
    // A writer that reads too may leave its read lock behind: the next writer cannot have the lock yet.
    if (held.downgrade !== undefined && held.lost === undefined) return this.departures.release(held);
    return this.departures.giveBack(held, now);
  }

  forget(held: HeldLock): void {
    held.downgrade?.abandon();
    this.drop(held);
    this.resume();
  }

  lost(held: HeldLock): void {
    this.forget(held);
    if (held.shares.length === 0) this.context.backgroundReleases.release(unusedOwner(held));
    else this.context.events.emit('lost', { name: held.name, owner: held.owner, error: held.lost as Error });
  }

  get length(): number {
    return this.waiting.length;
  }

  get holders(): readonly HeldLock[] {
    return this.holder === undefined ? NO_MORE : [this.holder, ...this.others];
  }

  /** For those who wait behind the next one; a lock that nobody else wants is not burdened with what hand-offs need. */
  get reserve(): number {
    return this.waiting.length > 1 ? this.departures.block : 0;
  }

  hold(held: HeldLock, now: Moment): void {
    this.seen = this.failure = undefined;
    if (this.holder === undefined) this.holder = held;
    else this.others = [...this.others, held];
    this.context.watchdog.guard(held, now);
  }

  drop(held: HeldLock): void {
    this.context.watchdog.drop(held);
    if (this.holder !== held) this.others = this.others.filter((other) => other !== held);
    else if (this.others.length === 0) this.holder = undefined;
    else [this.holder, ...this.others] = this.others;
  }

  disown(waiter: Waiter, { outcome, validUntil }: RequestOutcome): void {
    if (outcome === 'refused') return;
    const { owner, terms } = waiter;
    const { type, leaseTime } = terms;
    const waits = this.keepsPlace(waiter);
    this.context.backgroundReleases.release({ key: this.key, type, owner, leaseTime, validUntil, waits });
    waiter.renewOwner();
  }

  resume(): void {
    this.pump();
    this.retireIfIdle();
  }

  get contention(): Contention {
    const { backend, runtime, clientId } = this.context;
    this.contended ??= new Contention(
      (listener) => backend.subscribe(this.key, this.type, clientId, listener),
      runtime,
      () => this.pump(),
      (holder) => (this.type === 'read' ? undefined : backend.takeTicket?.(this.key, holder)),
    );
    return this.contended;
  }

  private pump(): void {
    if (this.claimed || this.underWay > 0 || this.contended?.resting) return;
    const head = this.waiting.first;
    if (head === undefined) return;
    if (!this.admits(head)) return this.refuseTriers((trier) => this.busyError(trier));
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
    const request = this.request(waiter);
    waiter.sent = this.context.clock.now();
    this.attempts++;
    if (request.type !== 'read') this.asking = request;
    this.contended?.begin();
    this.context.pendingAcquisitions.begin(request);
    this.context.backend.acquire(request).then(
      (reply) => this.answered(waiter, reply, request),
      (error) => this.failed(waiter, error, request),
    );
  }

  private request(waiter: Waiter): WaiterRequest {
    const { fairWaitTimeout, preferWriters } = this.context;
    const reserve = waiter.terms.type === 'read' ? 0 : this.reserve;
    return new WaiterRequest(this.key, waiter, reserve, this.keepsPlace(waiter) ? fairWaitTimeout : 0, preferWriters);
  }

  private answered(waiter: Waiter, reply: AcquireReply, request: WaiterRequest): void {
    const { type, leaseTime, fixed } = waiter.terms;
    const sent = waiter.sent as Moment;
    this.context.pendingAcquisitions.end(request);
    if (!reply.acquired) return this.foundBusy(waiter, reply);
    if (request.interference === 'removed') return this.takenAway(waiter, reply.validUntil);
    const { clock } = this.context;
    const now = clock.now();
    if (clock.age(sent, now) >= validity(leaseTime)) {
      const late = `the answer came after the lease of ${leaseTime} ms had ended`;
      return this.failed(waiter, new BackendError(late, 'unavailable', 'unknown'), request);
    }
    this.settleAttempt(waiter);
    this.contended?.acquired();
    const since = Math.floor(now.monotonic);
    const block = TokenBlock.of(reply.reserved);
    const { owner } = waiter;
    const held = new HeldLock(this, type, owner, leaseTime, fixed, sent, reply.token, since, block);
    held.lateCopiesUntil = reply.validUntil;
    this.hold(held, now);
    if (this.waiting.remove(waiter)) waiter.grant(held);
    else void this.giveBack(held);
    this.pump();
  }

  /** It was acquired, and released by force before the answer came: a waiter that is still here tries again. */
  private takenAway(waiter: Waiter, validUntil: number | undefined): void {
    this.settleAttempt(waiter);
    this.disown(waiter, { outcome: 'unknown', validUntil });
    this.resume();
  }

  private foundBusy(waiter: Waiter, reply: Busy): void {
    this.settleAttempt(waiter);
    if (reply.validUntil !== undefined) this.disown(waiter, { outcome: 'unknown', validUntil: reply.validUntil });
    this.seen = { busy: reply, at: this.context.clock.now() };
    if (waiter.settled) this.removeWaiter(waiter);
    this.refuseTriers((trier) => this.busyError(trier));
    if (this.waiting.length > 0) {
      this.contention.busy(reply.remaining, reply.holder);
      this.beImpatient();
      if (this.keepsPlace(waiter)) this.announce();
    }
    this.resume();
  }

  private failed(waiter: Waiter, error: BackendError, request: WaiterRequest): void {
    this.context.pendingAcquisitions.end(request);
    this.settleAttempt(waiter);
    this.failure = error;
    this.disown(waiter, error);
    // It left while it was being asked for: an attempt that came to nothing leaves the place of an earlier one.
    if (waiter.settled && error.outcome === 'refused') this.removeWaiter(waiter);
    if (!waiter.settled && error.kind !== 'unavailable') {
      this.leave(waiter);
      waiter.refuse(permanentError(waiter, this.context.backend, error));
    }
    this.refuseTriers((trier) => this.unavailableError(trier));
    const head = this.waiting.first;
    if (head !== undefined && error.kind === 'unavailable' && this.contention.failed()) {
      this.context.events.emit('error', this.unavailableError(head));
    }
    this.resume();
  }

  private settleAttempt(waiter: Waiter): void {
    this.attempts--;
    this.failure = this.asking = waiter.sent = undefined;
  }

  /** Callers that are content with one attempt, and have seen one. */
  private refuseTriers(refusal: (trier: Waiter) => Error): void {
    if (!this.tried) return;
    this.tried = false;
    for (const trier of this.waiting) {
      if (!trier.triesOnce) continue;
      if (trier.sent !== undefined) {
        this.tried = true;
        continue;
      }
      this.waiting.remove(trier);
      trier.refuse(refusal(trier));
    }
  }

  private depart(waiter: Waiter, departure: Departure): Error {
    // Who aborts is told so by the waiter itself.
    const refusal = departure === 'abort' ? this.unavailableError(waiter) : this.refusal(waiter);
    this.leave(waiter);
    return refusal;
  }

  /** Takes a waiter out; what the backend may know of it is undone, now or when its acquisition is answered. */
  private leave(waiter: Waiter): void {
    this.waiting.remove(waiter);
    if (waiter.sent === undefined) this.removeWaiter(waiter);
    if (this.waiting.length === 0) {
      this.contended?.onEmpty();
      this.patience?.close();
    }
    this.context.runtime.detached(() => this.pump());
    this.retireIfIdle();
  }

  private get departures(): LockReleaser {
    this.departed ??= new LockReleaser(this.context, this);
    return this.departed;
  }

  private beImpatient(): void {
    this.patience ??= new LongWaitWarning(this.context, this.waiting, () => this.obstruction.holder);
    this.patience.watch();
  }

  /** Keeps the place of the writer that is to come next. */
  private announce(): void {
    const announced = () =>
      this.waiting.first !== undefined && this.keepsPlace(this.waiting.first) ? [this.waiting.first] : [];
    this.places ??= new WaiterHeartbeat(this.context, this.key, 'write', announced, () => this.contention.recheck());
    this.places.start();
  }

  private keepsPlace(waiter: Waiter): boolean {
    return waiter.terms.type === 'write' && !waiter.triesOnce;
  }

  private removeWaiter(waiter: Waiter): void {
    if (!this.keepsPlace(waiter)) return;
    const place = { key: this.key, type: waiter.terms.type, owner: waiter.owner };
    const { backend, backgroundReleases, fairWaitTimeout } = this.context;
    backend
      .removeWaiter(place)
      .catch(() => backgroundReleases.release({ ...place, leaseTime: fairWaitTimeout, waits: true }));
  }

  private get idle(): boolean {
    return this.holder === undefined && this.waiting.length + this.attempts + this.underWay === 0;
  }

  private retireIfIdle(): void {
    if (this.claimed || !this.idle) return;
    const { contended } = this;
    if (contended !== undefined && contended.yieldRemaining > 0) return contended.afterYield(() => this.retireIfIdle());
    contended?.close();
    this.patience?.close();
    this.places?.stop();
    this.context.queues.retire(this);
  }

  private admits({ terms }: Waiter): boolean {
    return this.holder === undefined || (terms.type === 'read' && this.holder.type === 'read');
  }

  /** Whether a single try would fail, as far as this process knows. */
  private isBusyFor(waiter: Waiter): boolean {
    if (!this.admits(waiter)) return true;
    return this.waiting.length > 0 && (this.contended?.resting || (this.attempts === 0 && !this.claimed));
  }

  private get obstruction(): KnownHolder {
    const { clock } = this.context;
    const held = this.holder;
    if (held !== undefined) {
      const remaining = left(held.validFor, clock.age(held.confirmed));
      return { holder: held.owner, here: true, remaining, fixed: held.fixed };
    }
    const { busy, at } = this.seen ?? {};
    const unlimited = busy === undefined || at === undefined || busy.remaining < 0;
    return { holder: busy?.holder, here: false, remaining: unlimited ? -1 : left(busy.remaining, clock.age(at)) };
  }

  /** Why a caller is not served now: somebody is known to hold the lock, or the backend does not say. */
  private refusal(waiter: Waiter): Error {
    const asked = this.attempts + this.underWay > 0 || this.claimed;
    const unanswered = asked && this.holder === undefined && this.seen === undefined;
    return unanswered || this.failure !== undefined ? this.unavailableError(waiter) : this.busyError(waiter);
  }

  private busyError(waiter: Waiter): LockBusyError {
    const refusal = busyError(waiter, this.obstruction);
    const { events } = this.context;
    const { remainingTime, holder } = refusal;
    if (events.hears('busy')) events.emit('busy', { name: waiter.name, remainingTime, holder });
    return refusal;
  }

  private unavailableError(waiter: Waiter): LockUnavailableError {
    return unavailableError(waiter, this.context.backend, this.failure);
  }
}

function left(time: number, age: number): number {
  return Math.max(0, Math.round(time - age));
}
