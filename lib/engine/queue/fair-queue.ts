import { BackOff } from '../../backends/back-off.js';
import type { BackendError, Busy, Subscription, Wake } from '../../backends/lock-backend.js';
import type { Timer } from '../../backends/runtime.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import { type RequestOutcome, unusedOwner } from '../lease/background-releases.js';
import type { HeldLock, LockWaiter, ReleaseOutcome } from '../lease/held-lock.js';
import type { Moment } from '../lease/lease-clock.js';
import { permanentError } from '../waiting/wait-errors.js';
import { AcquisitionQueue } from './acquisition-queue.js';
import { WaiterHeartbeat } from './waiter-heartbeat.js';

/** The first and the longest pause after a failure, in milliseconds. */
const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 1_000;

/**
 * The queue of a fair lock. Each of its callers is in the backend's queue as well, among those of all processes, and is served in that order
 * alone: nothing is handed off inside this process. A release wakes the head of the backend's queue, whichever process it is in.
 *
 * A waiter keeps its owner id, and so its position, over attempts without an answer; what those may still do is undone in the end.
 */
export class FairQueue extends AcquisitionQueue {
  holders: readonly HeldLock[] = [];
  private readonly byOwner = new Map<string, LockWaiter>();
  /** After a failure: each waiter's next attempt. */
  private readonly retries = new Map<LockWaiter, Timer>();
  private readonly backOff: BackOff;
  private readonly heartbeat: WaiterHeartbeat;
  private subscription: Subscription | undefined;
  private timer: Timer | undefined;
  /** The last attempt failed. */
  private failing = false;

  constructor(context: AcquisitionContext, name: string, key: string, onIdle: (queue: AcquisitionQueue) => void) {
    super(context, name, key, 'fair', onIdle);
    this.backOff = new BackOff(context.runtime, FIRST_PAUSE, LONGEST_PAUSE);
    const registered = () => [...this.waiting].filter((waiter) => this.isRegistered(waiter));
    this.heartbeat = new WaiterHeartbeat(context, key, 'fair', registered, (waiter) => this.ask(waiter));
  }

  enqueue(waiter: LockWaiter): void {
    this.waiting.push(waiter);
    this.byOwner.set(waiter.owner, waiter);
    waiter.watch((departure) => this.depart(waiter, departure));
    this.warnOfLongWaits();
    this.ask(waiter);
  }

  removed(owners: readonly string[]): void {
    for (const waiter of this.waiting) {
      const isDoubtful = waiter.lateCopiesUntil !== undefined && waiter.sent === undefined;
      if (isDoubtful && owners.includes(waiter.owner))
        this.abandonOwner(waiter, { outcome: 'unknown', validUntil: undefined });
    }
  }

  claim(): boolean {
    this.claims++;
    return true;
  }

  giveBack(held: HeldLock): ReleaseOutcome | Promise<ReleaseOutcome> {
    if (held.lost === undefined) return this.release(held);
    this.context.backgroundReleases.release(unusedOwner(held));
    return 'gone';
  }

  override lost(held: HeldLock): void {
    super.lost(held);
    this.askFirst();
  }

  override hold(held: HeldLock, now: Moment): void {
    this.holders = [...this.holders, held];
    super.hold(held, now);
  }

  override drop(held: HeldLock): void {
    super.drop(held);
    this.holders = this.holders.filter((other) => other !== held);
  }

  /** Late copies of its acquisition may still bring the present owner back, so that the waiter goes on as another one. */
  abandonOwner(waiter: LockWaiter, { validUntil }: RequestOutcome): void {
    this.byOwner.delete(waiter.owner);
    waiter.noteLateCopies(validUntil);
    this.releaseLateCopies(waiter);
    waiter.renewOwner();
    if (!waiter.settled) this.byOwner.set(waiter.owner, waiter);
  }

  resume(): void {
    if (!this.isIdle) return;
    this.subscription?.close();
    this.subscription = undefined;
    this.retire();
  }

  protected granted(waiter: LockWaiter, held: HeldLock, now: Moment): void {
    this.answeredAgain();
    if (held.lateCopiesUntil !== undefined) waiter.noteLateCopies(held.lateCopiesUntil);
    held.lateCopiesUntil = waiter.lateCopiesUntil;
    this.hold(held, now);
    if (waiter.settled) this.context.events.unawaited(this.giveBack(held));
    this.remove(waiter);
    waiter.grant(held);
  }

  protected foundBusy(waiter: LockWaiter, { remaining, validUntil }: Busy): void {
    this.answeredAgain();
    if (validUntil !== undefined) waiter.noteLateCopies(validUntil);
    if (waiter.settled) this.unregister(waiter);
    else if (waiter.triesOnce) this.dismiss(waiter, this.refusal(waiter));
    else this.waitForWake(waiter, remaining);
    this.resume();
  }

  protected attemptFailed(waiter: LockWaiter, error: BackendError, removed: boolean): void {
    const { backend, outages, runtime } = this.context;
    if (error.outcome === 'unknown') waiter.noteLateCopies(error.validUntil);
    if (removed || error.spent) this.abandonOwner(waiter, error);
    if (waiter.settled) this.unregister(waiter);
    else if (waiter.triesOnce || error.kind !== 'unavailable')
      this.dismiss(waiter, permanentError(waiter, backend, error));
    else {
      if (!this.failing) outages.attemptFailed(() => this.unavailable(waiter));
      this.failing = true;
      const retry = () => {
        this.retries.delete(waiter);
        this.ask(waiter);
      };
      this.retries.get(waiter)?.cancel(); // it was woken meanwhile, and has failed again
      this.retries.set(waiter, runtime.timer(this.backOff.next(), retry, 'keep-alive'));
    }
    this.resume();
  }

  protected askAgain(waiter: LockWaiter): void {
    this.ask(waiter);
    this.resume();
  }

  protected override unregister(waiter: LockWaiter): void {
    this.releaseLateCopies(waiter);
    super.unregister(waiter);
  }

  protected override remove(waiter: LockWaiter): void {
    super.remove(waiter);
    this.byOwner.delete(waiter.owner);
    this.retries.get(waiter)?.cancel();
    this.retries.delete(waiter);
    if (this.waiting.length > 0) return;
    this.timer?.cancel();
    this.timer = undefined;
    this.heartbeat.stop();
  }

  private ask(waiter: LockWaiter): void {
    if (waiter.sent === undefined && !waiter.settled) this.attempt(waiter);
  }

  private askFirst(): void {
    if (this.waiting.first !== undefined) this.ask(this.waiting.first);
  }

  private askAll(): void {
    for (const waiter of this.waiting) this.ask(waiter);
  }

  private answeredAgain(): void {
    this.failing = false;
    this.backOff.reset();
  }

  private waitForWake(waiter: LockWaiter, remaining: number): void {
    this.askFirstAfter(remaining);
    this.listen();
    this.heartbeat.start();
    if (waiter.woken) this.ask(waiter);
    waiter.woken = false;
  }

  /** The holder's lease, or the position of a dead head, ends without a message. */
  private askFirstAfter(delay: number): void {
    if (delay < 0) return;
    this.timer?.cancel();
    this.timer = this.context.runtime.timer(delay + 1, () => this.askFirst(), 'keep-alive');
  }

  private listen(): void {
    if (this.subscription !== undefined) return;
    const { backend, clientId } = this.context;
    const subscription = backend.subscribe(this.key, 'fair', clientId, (wake) => this.heard(wake));
    this.subscription = subscription;
    // A release before the subscription was confirmed was not heard: ask once more.
    subscription.ready.then(() => {
      if (this.subscription === subscription) this.askAll();
    });
  }

  private heard(wake: Wake): void {
    if (wake.kind === 'resync' || wake.owner === undefined) return this.askAll();
    const waiter = this.byOwner.get(wake.owner);
    if (waiter === undefined) return;
    if (waiter.sent === undefined) this.ask(waiter);
    else waiter.woken = true;
  }

  private releaseLateCopies({ owner, terms, lateCopiesUntil: validUntil }: LockWaiter): void {
    if (validUntil === undefined) return;
    const { leaseTime } = terms;
    this.context.backgroundReleases.release({ key: this.key, type: 'fair', owner, leaseTime, validUntil, waits: true });
  }
}
