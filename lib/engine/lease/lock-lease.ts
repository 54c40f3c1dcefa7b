import { type BackendError, type HeldType, withReason } from '../../backends/lock-backend.js';
import { printsAs } from '../../backends/prints-as.js';
import { detachable, detachLock, toDetachedTime } from '../detached/detach-lock.js';
import { LockError, LockLostError, LockNotOwnedError, LockUnavailableError } from '../errors.js';
import { announceDetached, announceLost, announceReleased } from '../events/lease-events.js';
import { confirmLeases } from '../hold/confirm-lease.js';
import {
  type HeldLock,
  type LockShare,
  type ReleaseListener,
  type ReleaseOutcome,
  tellOutcome,
} from '../hold/held-lock.js';
import { isKept, leaveToLapse } from '../hold/hold-at-least.js';
import { lostOnReleaseError } from '../hold/loss-reasons.js';
import { checkResult } from '../scope/body-result.js';
import { LockScope, lockScopes, type ScopedLease, scopeAround } from '../scope/lock-scope.js';
import { type EnteredGate, ShareGates } from '../scope/share-gate.js';
import type { Services } from '../services.js';
import { type Duration, toLeaseTime } from '../terms/duration.js';
import type { DetachOptions, Lease } from '../terms/lease.js';
import type { LeaseTerms, ReleaseMode } from '../terms/lock-options.js';
import type { Moment } from '../time/lease-clock.js';
import { leaseController } from './lease-controller.js';
import { printedLease } from './printed-lease.js';

/** The services that are needed here. */
type LeaseServices = Pick<
  Services,
  | 'backend'
  | 'backgroundReleases'
  | 'clientId'
  | 'clock'
  | 'events'
  | 'pendingAttempts'
  | 'runtime'
  | 'watchdog'
  | 'work'
>;

const NONE: readonly HeldLock[] = [];
const ENDED: Promise<void> = Promise.resolve();

/** The {@link Lease} of one lock, or of several locks of one service. It has a share in each of them. */
export class LockLease implements ScopedLease, LockShare, ReleaseListener {
  /** The links of the list that contains this lease. */
  previous: LockLease | undefined;
  next: LockLease | undefined;
  private readonly token: number;
  private readonly severalTokens: LeaseTokens | undefined;
  /** It was given back or detached. */
  released = false;
  /** Whether the caller waits for the release. */
  waits = true;
  /** What later callers of `release()` wait for. */
  private ending: Promise<void> | undefined;
  /** How many of its locks are given back, and have no outcome yet. */
  private unsettled = 0;
  /** The worst outcome so far. */
  private outcome: ReleaseOutcome = 'released';
  /** The locks that are freed, or passed on, with this lease: for the event of the release. */
  private freed: readonly HeldLock[] = NONE;
  private hasEnded = false;
  private controller: AbortController | undefined;
  loss: LockLostError | undefined;
  /** Whether a function runs, or ran, while the lease is held. Without one, only `release()` ends it. */
  hasBody = false;
  /** The lock was detached, and stays locked after this lease. */
  detached = false;
  private shareGates: ShareGates | undefined;

  /**
   * @param entered the gates of the shares whose child this lease is
   * @param onEnd called when the lease has ended or was lost
   */
  constructor(
    private readonly services: LeaseServices,
    readonly locks: readonly HeldLock[],
    readonly terms: LeaseTerms,
    readonly entered: readonly EnteredGate[],
    private readonly onEnd: (lease: LockLease, isLost: boolean) => void,
  ) {
    this.token = locks[0].token;
    this.severalTokens = locks.length > 1 ? new LeaseTokens(locks) : undefined;
    for (const lock of locks) lock.share(this);
  }

  get service(): object {
    return this.services;
  }

  get name(): string {
    return this.locks.length === 1 ? this.locks[0].name : this.names.join(', ');
  }

  get owner(): string {
    return this.locks[0].owner;
  }

  get type(): HeldType {
    return this.locks[0].type;
  }

  get owners(): ReadonlyMap<string, string> {
    return new Map(this.locks.map(({ name, owner }) => [name, owner]));
  }

  get names(): readonly string[] {
    return this.locks.map((lock) => lock.name);
  }

  get superseded(): number {
    return this.locks[0].superseded;
  }

  get fencingToken(): number {
    return this.severalTokens?.common ?? this.token;
  }

  get tokens(): ReadonlyMap<string, number> {
    return this.severalTokens?.byName ?? new Map([[this.name, this.token]]);
  }

  get signal(): AbortSignal {
    // After a blocked event loop, the caller may ask before any timer has fired.
    if (this.live && this.left() <= 0 && this.controller?.signal.aborted !== true) this.judge();
    if (this.controller === undefined) {
      this.controller = leaseController();
      if (this.loss !== undefined) this.controller.abort(this.loss);
    }
    return this.controller.signal;
  }

  /** Whether somebody has read {@link signal}, and may listen to it. */
  get hasSignal(): boolean {
    return this.controller !== undefined;
  }

  get live(): boolean {
    return !this.released && this.loss === undefined;
  }

  get isStranger(): boolean {
    return !this.terms.reentry;
  }

  get gates(): ShareGates {
    this.shareGates ??= new ShareGates(this.entered);
    return this.shareGates;
  }

  get held(): boolean {
    const { clock } = this.services;
    return this.live && this.remainingTime() > 0 && this.locks.every((lock) => !clock.diverged(lock.confirmed));
  }

  remainingTime(): number {
    return this.live ? Math.max(0, this.left()) : 0;
  }

  assertHeld(): void {
    if (this.held) return;
    this.assertLive();
    const reason = 'ended, or the clocks of this machine jumped and no renewal has confirmed it yet';
    throw new LockLostError(`The lease of '${this.name}' ${reason}`, this.name);
  }

  async extend(duration: Duration): Promise<void> {
    const leaseTime = toLeaseTime(duration, `extend() of '${this.name}': duration`);
    this.assertLive();
    this.assertNotAbandoned();
    const { backend, watchdog } = this.services;
    try {
      await Promise.all(this.locks.map((lock) => watchdog.extend(lock, leaseTime)));
    } catch (error) {
      const cause = withReason(backend, error as BackendError);
      const message = `The lease of '${this.name}' could not be extended: ${cause.message}`;
      throw new LockUnavailableError(message, this.name, { cause });
    }
    if (this.loss !== undefined) throw this.loss;
  }

  async run<T>(body: (lease: Lease) => T | Promise<T>): Promise<T> {
    const confirmed = this.confirm();
    if (confirmed !== undefined) await confirmed;
    const scope = new LockScope(this, scopeAround(this));
    this.hasBody = true;
    try {
      const result = await lockScopes.run(scope, body, this);
      checkResult(result, { what: `lease.run() of '${this.name}'`, body }, this.services.events);
      return result;
    } finally {
      scope.end();
    }
  }

  /**
   * Returns `undefined` when the locks are certainly held. If the clocks have diverged, the promise settles once the
   * backend has confirmed that they are.
   *
   * @throws LockLostError when one of them was lost, LockNotOwnedError when the lease was released
   */
  confirm(): Promise<void> | undefined {
    this.assertLive();
    const confirmed = confirmLeases(this.services, this.locks);
    this.assertLive(); // the clocks alone may show that it was lost
    return confirmed?.then(() => this.assertLive());
  }

  release(): Promise<void> {
    return this.releaseAs('confirmed') ?? ENDED;
  }

  /**
   * Like {@link release}, but returns a promise only if there is something to wait for or to report. With
   * `'background'`, it does not wait for the answer. If that answer reports a loss, a `lost` event and a warning
   * follow.
   */
  releaseAs(mode: ReleaseMode): Promise<void> | undefined {
    if (this.released) return mode === 'background' ? undefined : this.ending?.catch(() => {});
    // Set before the end, because an event listener or abort handler may call release() again.
    this.released = true;
    this.waits = mode !== 'background';
    const ending = this.end();
    // In the background, only this caller hears of a loss, although releases of other locks may still be unanswered.
    if (this.waits) this.ending = ending;
    return ending;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  async detach(options: DetachOptions): Promise<string> {
    const leaseTime = toDetachedTime(options, this.name);
    this.assertLive();
    this.assertNotAbandoned();
    const held = detachable(this.services, this.name, this.locks);
    this.services.watchdog.judge(held);
    this.assertLive(); // the clocks alone may show that it was lost
    held.forgetShares();
    const detaching = detachLock(this.services, held, leaseTime);
    this.released = true;
    this.ending = detaching.then(
      () => {},
      () => {},
    );
    try {
      const detached = await detaching;
      this.detached = true;
      announceDetached(this.services, this, detached);
      return detached.ticket;
    } catch (error) {
      this.noteLoss(error as LockLostError);
      throw error;
    } finally {
      this.leaveGates();
      this.onEnd(this, this.loss !== undefined);
    }
  }

  /**
   * Like {@link releaseAs}, but keeps the locks for `duration` milliseconds from now and then lets them lapse, without
   * releasing, renewing or handing them off. If a lock has other shares, this happens when the last of them is
   * released. Used for `holdAtLeast`.
   */
  releaseAfter(duration: number, mode: ReleaseMode): Promise<void> | undefined {
    if (this.live && this.left() > 0) {
      const until = this.services.runtime.monotonic() + duration;
      for (const lock of this.locks) lock.keep(until);
    }
    return this.releaseAs(mode);
  }

  lose(error: LockLostError): void {
    if (!this.live) return;
    this.loss = error;
    this.onEnd(this, true);
    this.controller?.abort(error);
  }

  /** Signals the body to stop. The locks stay held. The signal of a lost lease reports the loss. */
  requestEnd(reason: Error): void {
    if (this.loss !== undefined) return;
    this.controller ??= leaseController();
    this.controller.abort(reason);
  }

  /** Signals the body to stop. The locks lapse with their leases, which the watchdog still judges. */
  abort(reason: Error, locks = this.locks): void {
    const now = this.services.clock.now();
    for (const lock of locks) {
      // A lock that this lease has given back may be another caller's, or its release is unanswered.
      if (!lock.shares.includes(this)) continue;
      lock.abandon(reason);
      this.services.watchdog.guard(lock, now);
    }
    this.requestEnd(reason);
  }

  /** Why one of its locks is left to lapse. */
  private get abandoned(): Error | undefined {
    return this.locks.find(({ abandoned }) => abandoned !== undefined)?.abandoned;
  }

  /** @throws LockLostError when its time is over by the clocks; otherwise the reason why a lock is left to lapse */
  private assertNotAbandoned(): void {
    const { abandoned } = this;
    if (abandoned === undefined) return;
    this.judge();
    this.assertLive();
    throw abandoned;
  }

  private leaveGates(): void {
    if (this.shareGates !== undefined || this.entered.length > 0) this.gates.leave();
  }

  private assertLive(): void {
    if (this.detached) throw new LockNotOwnedError(`The lease of '${this.name}' was detached`, this.name);
    if (this.released) throw new LockNotOwnedError(`The lease of '${this.name}' was released already`, this.name);
    if (this.loss !== undefined) throw this.loss;
  }

  private end(): Promise<void> | undefined {
    const { clock, events } = this.services;
    const now = clock.now();
    this.services.watchdog.noticeBlock(now);
    if (this.loss === undefined && this.left(now) <= 0) {
      this.loss = this.judge();
      if (this.loss !== undefined) this.controller?.abort(this.loss);
    }
    if (events.timed) this.freed = freedBy(this, now);
    this.unsettled = this.locks.length;
    try {
      return this.waits ? this.giveBack(now) : this.giveBackInBackground(now);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Past its deadline by this process's clocks, a lock is lost, whatever the backend would say. @returns the loss */
  private judge(): LockLostError | undefined {
    const { watchdog } = this.services;
    for (const lock of this.locks) watchdog.judge(lock);
    return this.locks.find(({ lost }) => lost !== undefined)?.lost;
  }

  private giveBack(now: Moment): Promise<void> | undefined {
    const { services, locks } = this;
    if (locks.length === 1) return drop(services, locks[0], this, now);
    const answers = locks.map((lock) => drop(services, lock, this, now)).filter((answer) => answer !== undefined);
    return answers.length === 0 ? undefined : Promise.all(answers).then(() => {});
  }

  /** Ends the lease although some of its releases may be unanswered. */
  private giveBackInBackground(now: Moment): undefined {
    const { services, locks } = this;
    for (const lock of locks) {
      const transfer = drop(services, lock, this, now);
      if (transfer !== undefined) services.events.unawaited(transfer);
    }
    if (this.hasEnded) return;
    for (let i = 0; i < this.unsettled; i++) services.work.releaseStarted();
    this.ended(false);
  }

  /** @throws LockLostError for a caller that waits, if it has to be told of a loss */
  releaseSettled(outcome: ReleaseOutcome): void {
    if (this.hasEnded) return this.settledLate(outcome);
    if (outcome === 'gone' || this.outcome === 'released') this.outcome = outcome;
    this.unsettled--;
    if (this.unsettled === 0) this.ended(this.outcome !== 'unreachable');
  }

  private settledLate(outcome: ReleaseOutcome): void {
    this.services.work.releaseEnded();
    if (this.loss === undefined && outcome === 'gone') this.services.events.warnOfLoss(this.foundGone());
  }

  /** @param confirmed whether the backend has answered all releases */
  private ended(confirmed: boolean): void {
    this.hasEnded = true;
    this.leaveGates();
    const isLost = this.loss !== undefined || this.outcome === 'gone';
    this.onEnd(this, isLost);
    if (isLost) return this.reportLoss();
    if (this.freed.length > 0) announceReleased(this.services, this, this.freed, confirmed);
  }

  private reportLoss(): void {
    const error = this.loss ?? this.foundGone();
    if (this.terms.onLost === 'throw') throw error;
    this.services.events.warnOfLoss(error);
  }

  /** The backend did not hold a lock any more when it was released. */
  private foundGone(): LockLostError {
    const first = this.locks.reduce((one, other) => (other.leaseEnd < one.leaseEnd ? other : one));
    const error = lostOnReleaseError(this.name, this.services.watchdog.explain(first, 'gone-at-release'));
    this.noteLoss(error);
    return error;
  }

  private noteLoss(error: LockLostError): void {
    announceLost(this.services, this.locks[0], error, this.terms, this.name);
    this.loss = error;
    this.controller?.abort(error);
  }

  /** Milliseconds for which all locks are certainly held. */
  private left(now?: Moment): number {
    const { clock } = this.services;
    let least = Number.POSITIVE_INFINITY;
    for (const { confirmed, validFor } of this.locks) least = Math.min(least, clock.left(confirmed, validFor, now));
    return least;
  }
}

/** The fencing tokens of a lease as of its acquisition. The locks' own tokens grow with each hand-off. */
class LeaseTokens {
  private readonly all: readonly number[];

  constructor(private readonly locks: readonly HeldLock[]) {
    this.all = locks.map(({ token }) => token);
  }

  /** @throws LockError if the locks have different tokens */
  get common(): number {
    const [token, ...others] = this.all;
    if (others.every((other) => other === token)) return token;
    const names = this.locks.map(({ name }) => name).join(', ');
    throw new LockError(`The locks ${names} have different fencing tokens: read lease.tokens.get(name)`, names);
  }

  get byName(): ReadonlyMap<string, number> {
    return new Map(this.locks.map(({ name }, i) => [name, this.all[i]]));
  }
}

/** The locks that are freed, or passed on, when this share is given back: for the event of the release. */
function freedBy({ locks }: LockLease, now: Moment): readonly HeldLock[] {
  return locks.filter((lock) => lock.shares.length === 1 && !isKept(lock, now));
}

/** Returns as `LockKeeper.giveBack`. */
function drop(services: LeaseServices, lock: HeldLock, lease: LockLease, now: Moment): Promise<void> | undefined {
  const isLast = lock.shares.length === 1;
  const lapses = isLast && isKept(lock, now) && lock.keeper.outlivesShares !== true;
  if (lapses) return tellOutcome(lease, leaveToLapse(services, lock, now));
  return lock.drop(lease, lease, now);
}

printsAs(LockLease, printedLease);
