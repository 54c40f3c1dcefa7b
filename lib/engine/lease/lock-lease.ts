import { type BackendError, type HeldType, withReason } from '../../backends/lock-backend.js';
import { printsAs } from '../../backends/prints-as.js';
import { detachable, detachLock, toDetachedTime } from '../detached/detach-lock.js';
import { LockError, LockLostError, LockNotOwnedError, LockUnavailableError } from '../errors.js';
import { confirmLeases } from '../hold/confirm-lease.js';
import type { GivenBack, HeldLock, LeaseTerms, LockShare, ReleaseListener, ReleaseOutcome } from '../hold/held-lock.js';
import { isKept, leaveToLapse } from '../hold/hold-at-least.js';
import type { Moment } from '../hold/lease-clock.js';
import { lostOnReleaseError } from '../hold/loss-reasons.js';
import { checkResult } from '../scope/body-result.js';
import { LockScope, lockScopes, type ScopedLease, scopeAround } from '../scope/lock-scope.js';
import { type EnteredGate, ShareGates } from '../scope/share-gate.js';
import type { Services } from '../services.js';
import { type Duration, toLeaseTime } from '../terms/duration.js';
import type { ReleaseMode } from '../terms/lock-options.js';
import type { DetachOptions, Lease } from './lease.js';
import { leaseController } from './lease-controller.js';
import { announceDetached, announceLost, announceReleased } from './lease-events.js';
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
/** As {@link ENDED}, for a caller that does not wait for the release. */
const IN_BACKGROUND: Promise<void> = Promise.resolve();

/** The {@link Lease} of one lock, or of several locks of one service. It has a share in each of them. */
export class LockLease implements ScopedLease, LockShare, ReleaseListener {
  /** The links of the list that contains this lease. */
  previous: LockLease | undefined;
  next: LockLease | undefined;
  private readonly token: number;
  private readonly severalTokens: LeaseTokens | undefined;
  ending: Promise<void> | undefined;
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
    return this.ending === undefined && this.loss === undefined;
  }

  get released(): boolean {
    return this.ending !== undefined;
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
    if (this.ending !== undefined) return mode === 'background' ? undefined : this.ending.catch(() => {});
    // Set before the end, because an event listener or abort handler may call release() again.
    this.ending = mode === 'background' ? IN_BACKGROUND : ENDED;
    const ending = this.end();
    // In the background, only this caller hears of a loss, although releases of other locks may still be unanswered.
    if (ending !== undefined && mode !== 'background') this.ending = ending;
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
    const freed = events.timed ? freedBy(this, now) : NONE;
    const { waits } = this;
    const dropped = waits ? this.dropShares(now, freed) : this.releaseInBackground(now);
    if (typeof dropped === 'object') return this.endedBy(dropped, freed);
    if (waits && dropped === undefined) return this.ending;
    // The locks were handed off in this process, are still shared, or nobody waits, so no promise is needed.
    try {
      this.ended(dropped ?? 'released', freed, dropped !== undefined);
      return undefined;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  private endedBy(dropped: Promise<ReleaseOutcome>, freed: readonly HeldLock[]): Promise<void> {
    return dropped.then((outcome) => this.ended(outcome, freed, outcome !== 'unreachable'));
  }

  /** Whether the caller waits for the release. */
  get waits(): boolean {
    return this.ending !== IN_BACKGROUND;
  }

  /** Past its deadline by this process's clocks, a lock is lost, whatever the backend would say. @returns the loss */
  private judge(): LockLostError | undefined {
    const { watchdog } = this.services;
    for (const lock of this.locks) watchdog.judge(lock);
    return this.locks.find(({ lost }) => lost !== undefined)?.lost;
  }

  /** Gives back all shares. Undefined: {@link ending} is the promise to wait for. */
  private dropShares(now: Moment, freed: readonly HeldLock[]): GivenBack {
    const { services, locks } = this;
    if (locks.length === 1) return drop(services, locks[0], this, now, freed.length === 0 ? this : undefined);
    return Promise.all(locks.map((lock) => drop(services, lock, this, now))).then((all) =>
      worst(all as ReleaseOutcome[]),
    );
  }

  /** Gives back all shares without waiting. Undefined: some releases have not been answered yet. */
  private releaseInBackground(now: Moment): ReleaseOutcome | undefined {
    const { services, locks } = this;
    let all: ReleaseOutcome | undefined = 'released';
    for (const lock of locks) {
      const outcome = drop(services, lock, this, now, this);
      if (outcome === 'gone') all = 'gone';
      if (typeof outcome === 'string') continue;
      services.work.releaseStarted();
      if (outcome !== undefined) services.events.unawaited(outcome.then((settled) => this.releaseSettled(settled)));
      if (all === 'released') all = undefined;
    }
    return all;
  }

  /** @throws LockLostError for a caller that waits, if it has to be told of a loss */
  releaseSettled(outcome: ReleaseOutcome): void {
    if (this.waits) return this.ended(outcome, NONE, outcome !== 'unreachable');
    this.services.work.releaseEnded();
    if (this.loss !== undefined) return;
    if (outcome !== 'gone') return;
    this.services.events.warnOfLoss(this.foundGone());
  }

  private ended(outcome: ReleaseOutcome, freed: readonly HeldLock[], confirmed: boolean): void {
    this.leaveGates();
    const isLost = this.loss !== undefined || outcome === 'gone';
    this.onEnd(this, isLost);
    if (isLost) return this.reportLoss();
    if (freed.length > 0) announceReleased(this.services, this, freed, confirmed);
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

function drop(
  services: LeaseServices,
  lock: HeldLock,
  share: LockShare,
  now: Moment,
  listener?: ReleaseListener,
): GivenBack {
  const isLast = lock.shares.length === 1;
  return isLast && isKept(lock, now) ? leaveToLapse(services, lock, now) : lock.drop(share, now, listener);
}

function worst(outcomes: readonly ReleaseOutcome[]): ReleaseOutcome {
  return outcomes.includes('gone') ? 'gone' : outcomes.includes('unreachable') ? 'unreachable' : 'released';
}

printsAs(LockLease, printedLease);
