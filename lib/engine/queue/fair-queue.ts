import { BackOff } from '../../backends/back-off.js';
import type { AcquireReply, Busy, HeldType, OwnerRef, Subscription, Wake } from '../../backends/lock-backend.js';
import type { Timer } from '../../backends/runtime.js';
import { type Asker, Attempt, type Failed, type FoundBusy, type Granted, type Outcome } from '../ask/attempt.js';
import { Doubt } from '../ask/doubt.js';
import type { LinkedQueue } from '../collections/linked-queue.js';
import {
  HeldLock,
  type LockKeeper,
  type LockWaiter,
  type ReleaseListener,
  tellOutcome,
  UNAWAITED,
} from '../hold/held-lock.js';
import { Tenure } from '../hold/tenure.js';
import type { Services } from '../services.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import type { Moment } from '../time/lease-clock.js';
import { permanentError } from '../wait/wait-errors.js';
import { Callers } from './callers.js';
import { unregister, WaiterHeartbeat } from './waiter-registration.js';

/**
 * A fair lock in one process. Each caller also has a position in the backend's queue, which orders the callers of all
 * processes, and is served only in that order: nothing is handed off inside this process. A release wakes the head of
 * the backend's queue, in whichever process.
 *
 * Each waiter therefore has its own state: `asking` (its request is pending), `waiting` (for a message addressed to
 * it), or `backing off` (a timer in `retries`). The first waiter also asks when the holder's lease ends.
 *
 * An unanswered attempt does not change a waiter's owner id, so the waiter keeps its position. Late effects of such
 * attempts are undone in the end.
 */
export class FairQueue implements LockKeeper, Asker<LockWaiter, AcquireReply> {
  readonly kind = 'fair';

  readonly callers: Callers;
  private readonly tenure: Tenure;
  private readonly byOwner = new Map<string, LockWaiter>();
  /** The timer for each waiter's next attempt after a failure. It may have fired already. */
  private readonly retries = new WeakMap<LockWaiter, Timer>();
  private readonly backOff: BackOff;
  private readonly heartbeat: WaiterHeartbeat<LockWaiter>;
  private subscription: Subscription | undefined;
  /** Subscriptions to releases of holders of other types. */
  private readonly otherTypes = new Map<HeldType, Subscription>();
  private timer: Timer | undefined;
  /** Whether the last attempt failed. */
  private failing = false;
  /** The number of unanswered acquisitions. */
  private attempts = 0;
  /** The number of attempts for several names that have not ended. */
  private claims = 0;

  /** @param onIdle called when the queue has nothing left to do */
  constructor(
    private readonly services: Services,
    readonly name: string,
    readonly key: string,
    private readonly onIdle: (queue: FairQueue) => void,
  ) {
    this.callers = new Callers(services, this);
    this.tenure = new Tenure(services, this);
    this.backOff = new BackOff(services.runtime);
    const registered = () => [...this.waiting].filter(({ triesOnce }) => !triesOnce);
    this.heartbeat = new WaiterHeartbeat(services, key, 'fair', registered, (waiter) => this.ask(waiter));
  }

  get waiting(): LinkedQueue<LockWaiter> {
    return this.callers.waiters;
  }

  get holders(): readonly HeldLock[] {
    return this.tenure.holders;
  }

  /** See LockQueue. Undefined, because an attempt for several names always asks the backend. */
  get leaving(): undefined {
    return undefined;
  }

  get isAsking(): boolean {
    return this.attempts > 0 || this.claims > 0 || this.tenure.isDeparting;
  }

  // ── Callers come and go ────────────────────────────────────────────────────────────────────────────────────────────

  /** Adds a waiter, which is served or refused later. */
  enqueue(waiter: LockWaiter): void {
    this.callers.add(waiter);
    this.byOwner.set(waiter.owner, waiter);
    this.callers.watch(waiter);
    this.callers.rest();
    this.ask(waiter);
  }

  /** Gives up the positions of waiters in the backend's queue: at once, or when their pending requests are answered. */
  left(waiters: readonly LockWaiter[]): void {
    for (const waiter of waiters) {
      this.forgetWaiter(waiter);
      if (waiter.attempt === undefined) this.unregister(waiter);
    }
    this.services.runtime.detached(() => this.endIfIdle());
  }

  private forgetWaiter(waiter: LockWaiter): void {
    this.byOwner.delete(waiter.owner);
    this.retries.get(waiter)?.cancel();
    if (!this.callers.isEmpty) return;
    this.timer?.cancel();
    this.heartbeat.stop();
  }

  endIfIdle(): void {
    if (!this.callers.isIdle) return;
    this.subscription?.close();
    this.subscription = undefined;
    for (const subscription of this.otherTypes.values()) subscription.close();
    this.otherTypes.clear();
    this.onIdle(this);
  }

  // ── Asking the backend ─────────────────────────────────────────────────────────────────────────────────────────────

  private ask(waiter: LockWaiter): void {
    if (waiter.attempt !== undefined || waiter.settled) return;
    const { services, key } = this;
    const { terms, owner } = waiter;
    const attempt = new Attempt(services, key, owner, terms, 0, waiter.triesOnce ? 0 : services.waiterTimeout);
    waiter.attempt = attempt;
    this.attempts++;
    attempt.send(services.backend.acquire(attempt), this, waiter);
  }

  private askAgain(waiter: LockWaiter): void {
    this.ask(waiter);
    this.endIfIdle();
  }

  private askFirst(): void {
    if (this.waiting.first !== undefined) this.wake(this.waiting.first);
  }

  private askAll(): void {
    for (const waiter of this.waiting) this.wake(waiter);
  }

  /** Lets a waiter ask: now, or once more after its present request, which may have been executed before the change. */
  private wake(waiter: LockWaiter): void {
    if (waiter.attempt === undefined) this.ask(waiter);
    else waiter.woken = true;
  }

  /** Called when the request of a waiter has ended. */
  settled(outcome: Outcome, waiter: LockWaiter): void {
    this.attempts--;
    this.callers.failure = waiter.attempt = undefined;
    waiter.note(outcome);
    if (outcome.state === 'failed') this.unanswered(waiter, outcome);
    else if (outcome.state === 'granted' || outcome.state === 'busy') {
      this.failing = false;
      this.backOff.reset();
      if (outcome.state === 'granted') this.granted(waiter, outcome);
      else this.foundBusy(waiter, outcome);
    } else {
      this.abandonOwner(waiter);
      this.ask(waiter);
    }
    this.endIfIdle();
  }

  private granted(waiter: LockWaiter, outcome: Granted): void {
    const { reply, answeredAt } = outcome;
    const held = new HeldLock(this, outcome, waiter.terms.fixed, reply, Math.floor(answeredAt.monotonic));
    held.lateCopiesUntil = waiter.doubt?.until;
    this.hold(held, answeredAt);
    if (waiter.settled) this.services.events.unawaited(this.giveBack(held, UNAWAITED));
    this.callers.remove(waiter);
    this.forgetWaiter(waiter);
    waiter.grant(held);
  }

  private foundBusy(waiter: LockWaiter, { reply, answeredAt, wasRemoved }: FoundBusy): void {
    this.callers.foundBusy(reply, answeredAt, waiter);
    if (waiter.settled) this.unregister(waiter);
    else if (wasRemoved && waiter.doubt !== undefined && !waiter.triesOnce) {
      // This answer does not tell whether an earlier request, which got no answer, takes the lock again.
      this.abandonOwner(waiter);
      this.ask(waiter);
    } else if (!waiter.triesOnce) this.waitForWake(waiter, reply);
    else if (!this.tenure.asksBehindRelease(waiter, reply, () => this.askAgain(waiter)))
      this.callers.dismiss(waiter, this.callers.refusal(waiter));
  }

  private unanswered(waiter: LockWaiter, { error, wasRemoved, ownerSpent }: Failed): void {
    const { backend, outages, runtime } = this.services;
    this.callers.noteFailure(error);
    if (wasRemoved || ownerSpent) this.abandonOwner(waiter);
    if (waiter.settled) this.unregister(waiter);
    else if (waiter.triesOnce || error.kind !== 'unavailable')
      this.callers.dismiss(waiter, permanentError(waiter, backend, error));
    else {
      if (!this.failing) outages.attemptFailed(() => this.callers.unavailable(waiter));
      this.failing = true;
      this.retries.get(waiter)?.cancel(); // the waiter may have been woken meanwhile, and have failed again
      this.retries.set(
        waiter,
        runtime.timer(this.backOff.next(), () => this.ask(waiter), 'keep-alive'),
      );
    }
  }

  // ── Waiting for a message ──────────────────────────────────────────────────────────────────────────────────────────

  private waitForWake(waiter: LockWaiter, { remaining, heldAs = 'reentrant' }: Busy): void {
    this.askFirstAfter(remaining);
    this.listen();
    this.listenTo(heldAs);
    this.heartbeat.start();
    if (waiter.woken) this.ask(waiter);
    waiter.woken = false;
  }

  /** Asks when the holder's lease, or the position of a dead head, has ended without a message. */
  private askFirstAfter(delay: number): void {
    if (delay < 0) return;
    this.timer?.cancel();
    this.timer = this.services.runtime.timer(delay + 1, () => this.askFirst(), 'keep-alive');
  }

  private listen(): void {
    if (this.subscription !== undefined) return;
    const { backend, clientId } = this.services;
    const subscription = backend.subscribe(this.key, 'fair', clientId, (wake) => this.heard(wake));
    this.subscription = subscription;
    // A release may have been missed before the subscription was confirmed, so ask once more.
    subscription.ready.then(() => this.askAll());
  }

  /**
   * The release of a holder of another type is not addressed to the head of the backend's queue. A busy answer does not
   * say whether the holder's type is `fair` or `reentrant`.
   */
  private listenTo(heldAs: HeldType): void {
    if (this.otherTypes.has(heldAs)) return;
    const { backend, clientId } = this.services;
    const subscription = backend.subscribe(this.key, heldAs, clientId, () => this.askFirst());
    this.otherTypes.set(heldAs, subscription);
    subscription.ready.then(() => this.askFirst());
  }

  private heard(wake: Wake): void {
    if (wake.kind === 'resync' || wake.owner === undefined) return this.askAll();
    const waiter = this.byOwner.get(wake.owner);
    if (waiter !== undefined) this.wake(waiter);
  }

  // ── Owner ids, and positions in the backend's queue ────────────────────────────────────────────────────────────────

  /**
   * Handles a forced release by this process. A waiter that may have been one of these owners gets a new owner id.
   */
  removed(owners: readonly string[]): void {
    for (const waiter of this.waiting) {
      const isDoubtful = waiter.doubt !== undefined && waiter.attempt === undefined;
      if (isDoubtful && owners.includes(waiter.owner)) this.abandonOwner(waiter);
    }
  }

  /**
   * Gives the waiter a new owner id, because late copies of its requests may still take effect for the present id.
   */
  private abandonOwner(waiter: LockWaiter): void {
    const { owner, terms, doubt = new Doubt() } = waiter;
    this.byOwner.delete(owner);
    doubt.exists = true;
    doubt.undo(this.services.backgroundReleases, { key: this.key, type: 'fair', owner }, terms.leaseTime, true);
    waiter.renewOwner();
    if (!waiter.settled) this.byOwner.set(waiter.owner, waiter);
  }

  private unregister(waiter: LockWaiter): void {
    const { owner, terms, doubt } = waiter;
    const place: OwnerRef = { key: this.key, type: 'fair', owner };
    doubt?.undo(this.services.backgroundReleases, place, terms.leaseTime, true);
    if (!waiter.triesOnce) unregister(this.services, place);
  }

  // ── Several names ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** An attempt for several names may always ask, because the backend keeps the order. */
  claim(): boolean {
    this.claims++;
    return true;
  }

  /** Ends a {@link claim} that acquired nothing. */
  unclaim(): void {
    this.claims--;
    this.endIfIdle();
  }

  /** Ends a {@link claim} that acquired the lock. */
  fulfil(attempt: Attempt, { fixed }: AcquisitionTerms, token: number): HeldLock {
    this.claims--;
    const now = this.services.clock.now();
    const held = new HeldLock(this, attempt, fixed, { token, reserved: 0 }, Math.floor(now.monotonic));
    this.hold(held, now);
    return held;
  }

  // ── The lock while it is held here ─────────────────────────────────────────────────────────────────────────────────

  private hold(held: HeldLock, now: Moment): void {
    this.callers.failure = undefined;
    this.callers.forgetHolder();
    this.tenure.hold(held, now);
  }

  forget(held: HeldLock): void {
    this.tenure.forget(held);
    this.endIfIdle();
  }

  lost(held: HeldLock): void {
    this.forget(held);
    this.tenure.reportLoss(held);
    this.askFirst();
  }

  giveBack(held: HeldLock, listener: ReleaseListener): Promise<void> | undefined {
    const forgotten = this.tenure.giveBackForgotten(held);
    return forgotten === undefined ? this.tenure.giveBack(held, listener) : tellOutcome(listener, forgotten);
  }

  released(): void {
    this.endIfIdle();
  }
}
