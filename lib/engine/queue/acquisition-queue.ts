import type { AcquireReply, BackendError, Busy, LockType } from '../../backends/lock-backend.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import { LinkedQueue } from '../collections/linked-queue.js';
import type { LockBusyError, LockUnavailableError } from '../errors.js';
import type { RequestOutcome } from '../lease/background-releases.js';
import { HeldLock, type LockKeeper, type LockWaiter } from '../lease/held-lock.js';
import type { Moment } from '../lease/lease-clock.js';
import { TokenBlock } from '../lease/token-block.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import type { Caller } from '../waiting/caller.js';
import { lateAnswer } from '../waiting/late-answer.js';
import type { WaitingQueue } from '../waiting/outages.js';
import { busyError, type KnownHolder, shutdownError, unavailableError } from '../waiting/wait-errors.js';
import type { Departure } from '../waiting/waiter.js';
import { WaiterRequest } from '../waiting/waiter-request.js';
import { knownHolder, type SeenBusy } from './known-holder.js';
import { LockHolders } from './lock-holders.js';
import { LongWaitWarning } from './long-wait-warning.js';

/**
 * The callers of one process that wait for one lock. It asks the backend on their behalf, and deals with its answers, also with those that
 * arrive too late or not at all. A subclass decides which waiter asks next, and what to do when the lock is busy.
 */
export abstract class AcquisitionQueue extends LockHolders implements WaitingQueue {
  readonly waiting = new LinkedQueue<LockWaiter>();

  /** Acquisitions that were not answered yet. */
  protected attempts = 0;
  /** Attempts from outside (see {@link claim}) that have not ended yet. */
  protected claims = 0;
  /** The last acquisition's failure. */
  protected failure: BackendError | undefined;
  /** The last answer that named another holder. */
  protected seen: SeenBusy | undefined;
  private longWaits: LongWaitWarning | undefined;
  /** Its waiters rest, as far as outages are concerned. */
  private resting = false;

  /** @param onIdle called when nothing goes on in the queue any more */
  constructor(
    context: AcquisitionContext,
    name: string,
    key: string,
    type: LockType,
    private readonly onIdle: (queue: AcquisitionQueue) => void,
  ) {
    super(context, name, key, type);
  }

  /** Serves this waiter, or refuses it, sooner or later. */
  abstract enqueue(waiter: LockWaiter): void;

  /** These owners were removed by force: waiters that may have been one of them go on as other owners. */
  abstract removed(owners: readonly string[]): void;

  /** Reserves the queue for one attempt from outside. False: that would mean waiting. */
  abstract claim(): boolean;

  /** Ends a {@link claim} that acquired nothing. */
  unclaim(): void {
    this.claims--;
    this.resume();
  }

  /** Ends a {@link claim} that acquired the lock. */
  fulfil(owner: string, terms: AcquisitionTerms, sent: Moment, token: number): HeldLock {
    this.claims--;
    return this.adopt(owner, terms, sent, token, this);
  }

  /**
   * Holds a lock that was acquired from outside.
   *
   * @param keeper is told in place of this queue what becomes of the lock
   */
  adopt(owner: string, terms: AcquisitionTerms, sent: Moment, token: number, keeper: LockKeeper): HeldLock {
    const { type, leaseTime, fixed } = terms;
    const now = this.context.clock.now();
    const held = new HeldLock(keeper, type, owner, leaseTime, fixed, sent, token, Math.floor(now.monotonic));
    this.hold(held, now);
    return held;
  }

  /** Shutdown: refuses the waiters to which `whom` applies. */
  rejectWaiters(whom: (waiter: LockWaiter) => boolean): void {
    this.refuseWhere((waiter) => (whom(waiter) ? shutdownError('Waiting', waiter.name) : undefined));
  }

  get keys(): readonly string[] {
    return [this.key];
  }

  refuseWhere(errorOf: (waiter: LockWaiter) => Error | undefined): void {
    for (const waiter of this.waiting) {
      const error = errorOf(waiter);
      if (error !== undefined) this.dismiss(waiter, error);
    }
  }

  /** Refuses one waiter. */
  dismiss(waiter: LockWaiter, error: Error): void {
    this.leave(waiter);
    waiter.refuse(error);
  }

  /** How many fencing tokens to reserve with the next acquisition, for hand-offs. */
  get reserve(): number {
    return 0;
  }

  override hold(held: HeldLock, now: Moment): void {
    this.failure = undefined;
    super.hold(held, now);
  }

  /** What the backend may hold for a waiter's owner is released in the background, and the waiter gets another owner. */
  abstract abandonOwner(waiter: LockWaiter, outcome: RequestOutcome): void;

  protected abstract granted(waiter: LockWaiter, held: HeldLock, now: Moment): void;

  protected abstract foundBusy(waiter: LockWaiter, reply: Busy): void;

  /** @param removed the owner was removed by a forced release meanwhile */
  protected abstract attemptFailed(waiter: LockWaiter, error: BackendError, removed: boolean): void;

  /** The lock was acquired, and released by force before the answer arrived: a waiter that is still here asks again. */
  protected abstract askAgain(waiter: LockWaiter): void;

  protected attempt(waiter: LockWaiter): WaiterRequest {
    const { clock, fairWaitTimeout, pendingAcquisitions, preferWriters } = this.context;
    const reserve = waiter.terms.type === 'read' ? 0 : this.reserve;
    const ttl = this.isRegistered(waiter) ? fairWaitTimeout : 0;
    const request = new WaiterRequest(this.key, waiter, reserve, ttl, preferWriters);
    waiter.sent = clock.now();
    this.attempts++;
    pendingAcquisitions.begin(request);
    this.send(request, waiter).then(
      (reply) => this.answered(waiter, reply, request),
      (error) => this.failed(waiter, error, request),
    );
    return request;
  }

  protected send(request: WaiterRequest, _waiter: LockWaiter): Promise<AcquireReply> {
    return this.context.backend.acquire(request);
  }

  protected settleAttempt(waiter: LockWaiter): void {
    this.attempts--;
    this.failure = waiter.sent = undefined;
  }

  /** Removes a waiter; what the backend may know about it is undone, now or when its acquisition is answered. */
  protected leave(waiter: LockWaiter): void {
    this.remove(waiter);
    if (waiter.sent === undefined) this.unregister(waiter);
    this.context.runtime.detached(() => this.resume());
  }

  protected remove(waiter: LockWaiter): void {
    this.waiting.remove(waiter);
    if (this.waiting.length === 0) this.nobodyWaits();
  }

  protected depart(waiter: LockWaiter, departure: Departure): Error {
    // A caller that aborts gets an error of its own in place of this one.
    const error = departure === 'abort' ? this.unavailable(waiter) : this.refusal(waiter);
    this.leave(waiter);
    return error;
  }

  /** Whether the backend knows the waiter while it waits: in the queue of a fair lock, or as a waiting writer. */
  protected isRegistered({ terms, triesOnce }: LockWaiter): boolean {
    return (terms.type === 'fair' || terms.type === 'write') && !triesOnce;
  }

  protected unregister(waiter: LockWaiter): void {
    if (this.isRegistered(waiter)) this.removeFromBackend(waiter.terms.type, waiter.owner);
  }

  /** A waiter is not to be registered under this owner any more. */
  protected removeFromBackend(type: LockType, owner: string): void {
    const { backend, backgroundReleases, fairWaitTimeout } = this.context;
    const known = { key: this.key, type, owner };
    backend
      .removeWaiter(known)
      .catch(() => backgroundReleases.release({ ...known, leaseTime: fairWaitTimeout, waits: true }));
  }

  protected warnOfLongWaits(): void {
    this.longWaits ??= new LongWaitWarning(this.context, this.waiting, () => this.knownHolder);
    this.longWaits.watch();
    if (this.resting) return;
    this.resting = true;
    this.context.outages.rest();
  }

  private nobodyWaits(): void {
    this.longWaits?.close();
    if (this.resting) this.context.outages.unrest();
    this.resting = false;
  }

  protected get isIdle(): boolean {
    const { waiting, attempts, departures, claims } = this;
    return waiting.length + attempts + departures + claims === 0 && this.holders.length === 0;
  }

  protected retire(): void {
    this.nobodyWaits();
    this.onIdle(this);
  }

  /** Why a waiter is not served in time. */
  protected refusal(waiter: LockWaiter): Error {
    return this.isUnavailableTo(waiter) ? this.unavailable(waiter) : this.busy(waiter);
  }

  /** Whether a caller whose time is over has met an outage, and not a busy lock. */
  isUnavailableTo(caller: Caller<never>): boolean {
    const asked = this.attempts + this.departures + this.claims > 0;
    return this.failure !== undefined || this.context.outages.isSilent(caller, this.keys, asked);
  }

  protected busy(waiter: LockWaiter): LockBusyError {
    const error = busyError(waiter, this.knownHolder);
    const { events } = this.context;
    if (!events.hears('busy')) return error;
    const { remainingTime, holder, holderClient } = error;
    const { type, group, method } = waiter.terms;
    events.emit('busy', { name: waiter.name, type, group, method, remainingTime, holder, holderClient });
    return error;
  }

  protected unavailable(waiter: LockWaiter): LockUnavailableError {
    const { backend, outages } = this.context;
    return unavailableError(waiter, backend, this.failure ?? outages.failure(this.keys));
  }

  private get knownHolder(): KnownHolder {
    return knownHolder(this.context, this.holders[0], this.seen);
  }

  private answered(waiter: LockWaiter, reply: AcquireReply, request: WaiterRequest): void {
    const { clock, pendingAcquisitions } = this.context;
    const { type, leaseTime, fixed } = waiter.terms;
    const sent = (reply.acquired && reply.confirmed) || (waiter.sent as Moment);
    const now = clock.now();
    const late = reply.acquired && request.interference !== 'removed' && lateAnswer(clock, sent, leaseTime, now);
    if (late) return this.failed(waiter, late, request);
    pendingAcquisitions.end(request);
    this.settleAttempt(waiter);
    if (!reply.acquired) {
      this.seen = { busy: reply, at: now };
      if (waiter.mayLeave && reply.holder !== undefined) this.context.holders.expect(reply.holder);
      return this.foundBusy(waiter, reply);
    }
    if (request.interference === 'removed') {
      this.abandonOwner(waiter, { outcome: 'unknown', validUntil: reply.validUntil });
      return this.askAgain(waiter);
    }
    const since = Math.floor(now.monotonic);
    const block = TokenBlock.of(reply.reserved);
    const held = new HeldLock(this, type, waiter.owner, leaseTime, fixed, sent, reply.token, since, block);
    held.lateCopiesUntil = reply.validUntil;
    this.granted(waiter, held, now);
  }

  private failed(waiter: LockWaiter, error: BackendError, request: WaiterRequest): void {
    this.context.pendingAcquisitions.end(request);
    this.settleAttempt(waiter);
    this.failure = error;
    this.attemptFailed(waiter, error, request.interference === 'removed');
  }
}
