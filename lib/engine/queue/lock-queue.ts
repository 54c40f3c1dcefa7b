import type { BackendError, Busy } from '../../backends/lock-backend.js';
import type { RequestOutcome } from '../lease/background-releases.js';
import type { HeldLock, LockKeeper, LockWaiter, ReleaseOutcome } from '../lease/held-lock.js';
import type { Moment } from '../lease/lease-clock.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import { permanentError } from '../waiting/wait-errors.js';
import type { WaiterRequest } from '../waiting/waiter-request.js';
import { ContendedQueue } from './contended-queue.js';
import { LockReleaser } from './lock-releaser.js';
import { WaiterHeartbeat } from './waiter-heartbeat.js';

const NONE: readonly HeldLock[] = [];

/**
 * The queue of any lock but a fair one: callers are served in the order of their arrival, and only the head contends in the backend
 * (adjacent readers together). A lock that is given back goes on by {@link LockReleaser}.
 */
export class LockQueue extends ContendedQueue {
  private holder: HeldLock | undefined;
  /** Readers beside the holder. */
  private otherReaders: readonly HeldLock[] = NONE;
  // Created when they are first needed.
  private lockReleaser: LockReleaser | undefined;
  private heartbeat: WaiterHeartbeat | undefined;
  /** The latest request. Callers that arrive before it is sent are counted in: hand-offs need tokens. */
  private asking: WaiterRequest | undefined;
  /** Spent owners of writers, which stay announced until the next attempt is answered: readers must not slip in between. */
  private formerOwners: readonly string[] = [];
  /** Callers that try once may be among the waiters: this saves looking through thousands of waiters for none. */
  private hasTriers = false;

  get holders(): readonly HeldLock[] {
    if (this.holder === undefined) return NONE;
    return this.otherReaders.length === 0 ? this.holder.alone : [this.holder, ...this.otherReaders];
  }

  enqueue(waiter: LockWaiter): void {
    if (waiter.triesOnce && this.isBusyFor(waiter)) {
      waiter.refuse(this.refusal(waiter));
      return this.retireIfIdle();
    }
    this.waiting.push(waiter);
    this.hasTriers ||= waiter.triesOnce;
    if (this.asking?.reserve === 0) this.asking.reserve = this.reserve;
    if (waiter.mayLeave) waiter.watch((departure) => this.depart(waiter, departure));
    if (this.waiting.length === 1 && !waiter.triesOnce) this.contended?.arrive(waiter.remainingWait);
    if (this.waiting.length > 1 || this.holder !== undefined) this.warnOfLongWaits();
    this.pump();
  }

  /** Nothing to do: a waiter gets another owner whenever it is not known what the backend has done for its present one. */
  removed(): void {}

  renewSpentOwner(waiter: LockWaiter): void {
    if (!waiter.ownerSpent) return;
    if (this.isRegistered(waiter)) this.formerOwners = [...this.formerOwners, waiter.owner];
    waiter.renewOwner();
  }

  override transferSettled(): void {
    super.transferSettled();
    this.removeFormerOwners();
  }

  claim(): boolean {
    if (this.claims > 0 || !this.isIdle) return false;
    this.claims++;
    return true;
  }

  override adopt(owner: string, terms: AcquisitionTerms, sent: Moment, token: number, keeper: LockKeeper): HeldLock {
    this.contended?.acquired();
    const held = super.adopt(owner, terms, sent, token, keeper);
    this.pump();
    return held;
  }

  giveBack(held: HeldLock, now?: Moment): ReleaseOutcome | Promise<ReleaseOutcome> {
    const { downgrade } = held;
    downgrade?.abandon();
    // A writer that reads, too, may leave its read lock behind: the next writer cannot have the lock yet.
    const staysHere = this.waiting.length > 0 && downgrade === undefined;
    return staysHere || held.lost !== undefined ? this.releaser.giveBack(held, now) : this.release(held);
  }

  override forget(held: HeldLock): void {
    held.downgrade?.abandon();
    super.forget(held);
  }

  /** For callers behind the next one; a lock that nobody else wants does not pay for hand-offs. */
  override get reserve(): number {
    return this.waiting.length > 1 ? this.releaser.block : 0;
  }

  override hold(held: HeldLock, now: Moment): void {
    this.seen = undefined;
    if (this.holder === undefined) this.holder = held;
    else this.otherReaders = [...this.otherReaders, held];
    super.hold(held, now);
  }

  override drop(held: HeldLock): void {
    super.drop(held);
    if (this.holder !== held) this.otherReaders = this.otherReaders.filter((other) => other !== held);
    else if (this.otherReaders.length === 0) this.holder = undefined;
    else [this.holder, ...this.otherReaders] = this.otherReaders;
  }

  abandonOwner(waiter: LockWaiter, { outcome, validUntil, spent }: RequestOutcome): void {
    if (outcome === 'refused' && !spent) return;
    const { owner, terms } = waiter;
    const { type, leaseTime } = terms;
    const waits = this.isRegistered(waiter);
    this.context.backgroundReleases.release({ key: this.key, type, owner, leaseTime, validUntil, waits });
    waiter.renewOwner();
  }

  resume(): void {
    this.pump();
    this.retireIfIdle();
  }

  protected granted(waiter: LockWaiter, held: HeldLock, now: Moment): void {
    this.contended?.acquired();
    this.hold(held, now);
    if (this.waiting.remove(waiter)) waiter.grant(held);
    else this.context.events.unawaited(this.giveBack(held));
    this.pump();
  }

  protected foundBusy(waiter: LockWaiter, { remaining, holder, validUntil, spent }: Busy): void {
    if (validUntil !== undefined) this.abandonOwner(waiter, { outcome: 'unknown', validUntil });
    else if (spent) waiter.ownerSpent = true;
    if (waiter.settled) this.unregister(waiter);
    this.refuseTriers((trier) => this.busy(trier));
    if (this.waiting.length > 0 && this.context.backend.blocking === undefined) {
      this.contention.busy(remaining, holder);
      this.warnOfLongWaits();
      if (this.isRegistered(waiter)) this.keepAlive();
    }
    this.resume();
  }

  protected attemptFailed(waiter: LockWaiter, error: BackendError): void {
    this.abandonOwner(waiter, error);
    // It left while its acquisition was under way: where that achieved nothing, the waiter may still be registered by an earlier one.
    if (waiter.settled && error.outcome === 'refused' && !error.spent) this.unregister(waiter);
    if (!waiter.settled && error.kind !== 'unavailable')
      this.dismiss(waiter, permanentError(waiter, this.context.backend, error));
    this.refuseTriers((trier) => this.unavailable(trier));
    const head = this.waiting.first;
    if (head !== undefined && error.kind === 'unavailable' && this.contention.failed())
      this.context.outages.attemptFailed(() => this.unavailable(head));
    this.resume();
  }

  protected askAgain(): void {
    this.resume();
  }

  protected override settleAttempt(waiter: LockWaiter): void {
    super.settleAttempt(waiter);
    this.asking = undefined;
    this.waitsInBackend = false;
    this.removeFormerOwners();
  }

  protected override remove(waiter: LockWaiter): void {
    super.remove(waiter);
    if (this.waiting.length > 0) return;
    this.contended?.onEmpty();
    this.stopBlocking(this.asking);
  }

  private pump(): void {
    if (this.claims > 0 || this.departures > 0 || this.contended?.resting) return;
    const head = this.waiting.first;
    if (head === undefined) return;
    if (!this.admits(head)) {
      if (this.hasTriers) this.refuseTriers((trier) => this.busy(trier));
      return;
    }
    if (head.terms.type !== 'read') {
      if (this.attempts === 0) this.asking = this.ask(head);
      return;
    }
    for (const reader of this.waiting) {
      if (reader.terms.type !== 'read') return;
      if (reader.sent === undefined) this.ask(reader);
    }
  }

  private ask(waiter: LockWaiter): WaiterRequest {
    this.contended?.begin();
    this.renewSpentOwner(waiter);
    return this.attempt(waiter);
  }

  /** Refuses the callers that try once, and have seen one attempt. */
  protected refuseTriers(errorOf: (trier: LockWaiter) => Error): void {
    if (!this.hasTriers) return;
    this.hasTriers = false;
    for (const trier of this.waiting) {
      if (!trier.triesOnce) continue;
      if (trier.sent !== undefined) {
        this.hasTriers = true;
        continue;
      }
      this.waiting.remove(trier);
      trier.refuse(errorOf(trier));
    }
  }

  private removeFormerOwners(): void {
    for (const owner of this.formerOwners) this.removeFromBackend('write', owner);
    if (this.formerOwners.length > 0) this.formerOwners = [];
  }

  /** Keeps the writer registered that is next. */
  private keepAlive(): void {
    const next = () => {
      const { first } = this.waiting;
      return first !== undefined && this.isRegistered(first) ? [first] : [];
    };
    this.heartbeat ??= new WaiterHeartbeat(this.context, this.key, 'write', next, () => this.contention.recheck());
    this.heartbeat.start();
  }

  private retireIfIdle(): void {
    if (!this.isIdle) return;
    const { contended } = this;
    if (contended !== undefined && contended.yieldRemaining > 0) return contended.afterYield(() => this.retireIfIdle());
    contended?.close();
    this.heartbeat?.stop();
    this.retire();
  }

  private admits({ terms }: LockWaiter): boolean {
    return this.holder === undefined || (terms.type === 'read' && this.holder.type === 'read');
  }

  /** Whether a single try would fail, as far as this process knows. */
  private isBusyFor(waiter: LockWaiter): boolean {
    if (!this.admits(waiter)) return true;
    const isResting = this.waitsInBackend || this.contended?.resting;
    return this.waiting.length > 0 && (isResting || (this.attempts === 0 && this.claims === 0));
  }

  private get releaser(): LockReleaser {
    this.lockReleaser ??= new LockReleaser(this.context, this);
    return this.lockReleaser;
  }
}
