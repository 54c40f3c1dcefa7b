import {
  type AcquireReply,
  BackendError,
  type Busy,
  type HeldType,
  isTransferable,
  type ReleaseReply,
  type TransferableType,
} from '../../backends/lock-backend.js';
import { type Asker, Attempt, type Failed, type FoundBusy, type Granted, type Outcome } from '../attempt.js';
import type { LinkedQueue } from '../collections/linked-queue.js';
import { giveBackForgotten, noteLoss } from '../lease/background-releases.js';
import {
  type GivenBack,
  HeldLock,
  type LockKeeper,
  type LockWaiter,
  type ReleaseListener,
  type ReleaseOutcome,
} from '../lease/held-lock.js';
import type { Moment } from '../lease/lease-clock.js';
import { RecallableRelease } from '../lease/recallable-release.js';
import { unreleasedOwner } from '../lease/unused-owner.js';
import type { Services } from '../services.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import { TurnToAsk } from '../waiting/turn-to-ask.js';
import { HandOffBudget, mayInherit } from './hand-off-budget.js';
import { isRegistered, unregister, WaiterHeartbeat } from './waiter-registration.js';
import { WaitingLine } from './waiting-line.js';

const NONE: readonly never[] = [];

/**
 * One lock in one process: its waiting callers, its leases in this process, the request under way, and the choice of
 * the next caller. All locks except fair locks use it. It exists for as long as it has something to do.
 *
 * Its behaviour at any moment follows from five states, in this order (only `serveNext` decides):
 *
 * 1. `claimed`: an attempt for several names, or an adoption, has reserved the lock. Nobody else asks until `unclaim`
 *    or `fulfil`.
 * 2. `departing`: a release, a transfer or a detachment is unanswered. Nobody asks, because the answer would say that
 *    this process holds the lock. A release that waits to be sent is recalled for a caller that arrives (`recall`), and
 *    goes to it as if that caller had been waiting.
 * 3. `held`: a lease of this process holds the lock. Callers wait for it here; readers join readers. When the last
 *    share is given back (`giveBack`), HandOffBudget decides where the lock goes: to the first waiter without asking
 *    the backend (`local`), to the first waiter by one command (`transfer`), or out of this process (`release`).
 * 4. `asking`: the first waiter asks the backend; readers at the head ask side by side. The answer grants the lock,
 *    says that it is busy, or never comes.
 * 5. `resting`: another process holds the lock, or the backend does not answer. TurnToAsk says when to try again: after
 *    a message, when the holder's lease ends, when it is this process's turn, or after a pause. A backend with its own
 *    queue (`blocking`) answers instead.
 *
 * When none of them applies and nobody waits, the queue ends.
 */
export class LockQueue implements LockKeeper, Asker<LockWaiter, AcquireReply> {
  readonly line: WaitingLine;

  // Locks held here. Usually there is one holder; only readers share.
  private holder: HeldLock | undefined = undefined;
  private otherReaders: readonly HeldLock[] = NONE;
  /** The latest release, until it is answered. */
  private departing: RecallableRelease | undefined = undefined;
  /** The latest release, also after it was recalled. */
  private latestRelease: RecallableRelease | undefined = undefined;

  // Requests under way.
  /** The number of unanswered acquisitions. */
  private attempts = 0;
  /** The number of unanswered releases, transfers and detachments. */
  private departures = 0;
  /** The number of attempts for several names, and of adoptions, that have reserved the lock. */
  private claims = 0;
  /** Called when no request is under way any more, while the lock is claimed. */
  private claimants: readonly (() => void)[] = NONE;
  /**
   * The head's acquisition until it is answered. Callers that arrive before it is sent raise its reserve, because
   * hand-offs need tokens.
   */
  private asking: Attempt | undefined = undefined;
  /** Whether the request waits in the backend until another holder releases the lock. */
  private waitsInBackend = false;

  // Created when first needed: most locks are held by one caller without contention.
  private again: TurnToAsk | undefined = undefined;
  private handOff: HandOffBudget | undefined = undefined;
  private heartbeat: WaiterHeartbeat | undefined = undefined;

  /**
   * Whether callers that try once may be among the waiters. It saves a search through thousands of waiters when there
   * are none.
   */
  private hasTriers = false;
  /**
   * Owner ids of writers that cannot be used again. They stay registered until the next attempt is answered, so that no
   * reader gets the lock before the writer.
   */
  private formerOwners: readonly string[] = [];

  /** @param onIdle called when the queue has nothing left to do */
  constructor(
    private readonly services: Services,
    readonly name: string,
    readonly key: string,
    readonly type: HeldType,
    private readonly onIdle: (queue: LockQueue) => void,
  ) {
    this.line = new WaitingLine(services, this);
  }

  // ── State ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  get waiting(): LinkedQueue<LockWaiter> {
    return this.line.waiters;
  }

  get holders(): readonly HeldLock[] {
    if (this.holder === undefined) return NONE;
    return this.otherReaders.length === 0 ? this.holder.alone : [this.holder, ...this.otherReaders];
  }

  /** The owner whose release is unanswered, if nobody else holds the lock or waits for it here. */
  get leaving(): string | undefined {
    const isLast = this.holder === undefined && this.waiting.length === 0 && this.claims === 0;
    return isLast ? this.departing?.owner : undefined;
  }

  get isAsking(): boolean {
    return this.attempts + this.departures + this.claims > 0;
  }

  get isUndecided(): boolean {
    return this.services.backend.blocking !== undefined && this.attempts > 0 && !this.waitsInBackend;
  }

  // ── Callers come and go ────────────────────────────────────────────────────────────────────────────────────────────

  /** Adds a waiter, which is served or refused later. */
  enqueue(waiter: LockWaiter): void {
    if (waiter.triesOnce && this.isBusyFor(waiter)) {
      waiter.refuse(this.line.refusal(waiter));
      return this.endIfIdle();
    }
    const { waiting } = this;
    waiting.push(waiter);
    if (this.departing?.recallable && this.recall(this.departing, waiter)) return;
    this.hasTriers ||= waiter.triesOnce;
    if (this.asking?.reserve === 0) this.asking.reserve = this.reserve;
    if (waiter.mayLeave) this.line.watch(waiter);
    if (waiting.length === 1 && !waiter.triesOnce) this.again?.arrive(waiter.remainingWait);
    if (waiting.length > 1 || this.holder !== undefined) this.line.rest();
    this.serveNext();
  }

  /** Removes the traces of a waiter in the backend: at once, or when its pending request is answered. */
  left(waiter: LockWaiter): void {
    if (this.line.isEmpty) {
      this.again?.onEmpty();
      // Stops the request that waits in the backend, because nobody waits for its answer any more.
      if (this.asking !== undefined) this.services.backend.blocking?.stop(this.asking);
    }
    if (waiter.attempt === undefined) this.unregister(waiter);
    this.services.runtime.detached(() => this.resume());
  }

  /** Whether a single try would fail, as far as this process knows. */
  private isBusyFor(waiter: LockWaiter): boolean {
    if (!this.admits(waiter)) return true;
    const isResting = this.waitsInBackend || this.again?.resting;
    return this.waiting.length > 0 && (isResting || (this.attempts === 0 && this.claims === 0));
  }

  /** Refuses the callers that try once and whose attempt has ended. */
  private refuseTriers(errorOf: (trier: LockWaiter) => Error): void {
    if (!this.hasTriers) return;
    this.hasTriers = false;
    for (const trier of this.waiting) {
      if (!trier.triesOnce) continue;
      if (trier.attempt !== undefined) {
        this.hasTriers = true;
        continue;
      }
      this.waiting.remove(trier);
      trier.refuse(errorOf(trier));
    }
  }

  // ── Serving waiters ────────────────────────────────────────────────────────────────────────────────────────────────

  private serveNext(): void {
    if (this.claims > 0) return this.admitClaimants();
    if (this.departures > 0 || this.again?.resting) return;
    const head = this.waiting.first;
    if (head === undefined) return;
    if (!this.admits(head)) {
      if (this.hasTriers) this.refuseTriers((trier) => this.line.busy(trier));
      return;
    }
    if (head.terms.type !== 'read') {
      if (this.attempts === 0) this.asking = this.ask(head);
      return;
    }
    for (const reader of this.waiting) {
      if (reader.terms.type !== 'read') return;
      if (reader.attempt === undefined) this.ask(reader);
    }
  }

  /** Continues after a request, a hold or a pause has ended. */
  private resume(): void {
    this.serveNext();
    this.endIfIdle();
  }

  private endIfIdle(): void {
    if (!this.line.isIdle) return;
    const { again } = this;
    if (again !== undefined && again.yieldRemaining > 0) return again.afterYield(() => this.endIfIdle());
    again?.close();
    this.heartbeat?.stop();
    this.line.close();
    this.onIdle(this);
  }

  private admits({ terms }: LockWaiter): boolean {
    return this.holder === undefined || (terms.type === 'read' && this.holder.type === 'read');
  }

  // ── Asking the backend ─────────────────────────────────────────────────────────────────────────────────────────────

  /** How many tokens to reserve for the callers behind the next one. Without contention, none are reserved. */
  private get reserve(): number {
    return this.waiting.length > 1 || this.handOff?.isFollowed ? this.budget.block : 0;
  }

  private ask(waiter: LockWaiter): Attempt {
    const { services, key } = this;
    this.again?.begin();
    this.renewSpentOwner(waiter);
    const { terms, owner } = waiter;
    const reserve = terms.type === 'read' ? 0 : this.reserve;
    const attempt = new Attempt(
      services,
      key,
      owner,
      terms,
      reserve,
      isRegistered(waiter) ? services.waiterTimeout : 0,
    );
    waiter.attempt = attempt;
    this.attempts++;
    attempt.send(this.request(attempt, waiter), this, waiter);
    return attempt;
  }

  private request(attempt: Attempt, { triesOnce }: LockWaiter): Promise<AcquireReply> {
    const { backend } = this.services;
    if (backend.blocking === undefined || triesOnce) return backend.acquire(attempt);
    return backend.blocking.acquire(attempt, (reason) => this.blocked(reason));
  }

  /** Called when the request of a waiter has ended. */
  settled(outcome: Outcome, waiter: LockWaiter): void {
    this.attempts--;
    this.line.failure = waiter.attempt = this.asking = undefined;
    this.waitsInBackend = false;
    this.removeFormerOwners();
    if (outcome.state === 'granted') this.granted(waiter, outcome);
    else if (outcome.state === 'busy') this.foundBusy(waiter, outcome);
    else if (outcome.state === 'failed') this.unanswered(waiter, outcome);
    else {
      // The lock was removed by force: the waiter asks again.
      this.abandonOwner(waiter, outcome);
      this.resume();
    }
  }

  private granted(waiter: LockWaiter, outcome: Granted): void {
    const { reply, answeredAt } = outcome;
    this.again?.acquired();
    const held = new HeldLock(this, outcome, waiter.terms.fixed, reply, Math.floor(answeredAt.monotonic));
    this.hold(held, answeredAt);
    if (this.waiting.remove(waiter)) waiter.grant(held);
    else this.services.events.unawaited(this.giveBack(held));
    this.serveNext();
  }

  private foundBusy(waiter: LockWaiter, outcome: FoundBusy): void {
    const { reply, answeredAt } = outcome;
    this.line.foundBusy(reply, answeredAt, waiter.mayLeave);
    if (outcome.inDoubt) this.abandonOwner(waiter, outcome);
    else if (outcome.ownerSpent) waiter.ownerSpent = true;
    if (waiter.settled) this.unregister(waiter);
    else if (this.asksBehindRelease(waiter, reply)) return;
    this.refuseTriers((trier) => this.line.busy(trier));
    if (this.waiting.length > 0 && this.services.backend.blocking === undefined) {
      this.turn.busy(reply.remaining, reply.holder, reply.heldAs);
      this.line.rest();
      if (isRegistered(waiter)) this.keepRegistered();
    }
    this.resume();
  }

  private asksBehindRelease(waiter: LockWaiter, reply: Busy): boolean {
    const answered = () => {
      this.departures--;
      this.resume();
    };
    if (!this.line.asksBehindRelease(waiter, reply, answered)) return false;
    this.departures++;
    return true;
  }

  private unanswered(waiter: LockWaiter, outcome: Failed): void {
    const { error } = outcome;
    // The waiter left while its request was under way. If the request had no effect, an earlier one may still have
    // registered the waiter.
    if (!this.abandonOwner(waiter, outcome) && waiter.settled) this.unregister(waiter);
    this.line.failed(waiter, error);
    this.refuseTriers((trier) => this.line.unavailable(trier));
    if (!this.line.isEmpty && error.kind === 'unavailable' && this.turn.failed()) this.line.reportFailure();
    this.resume();
  }

  /**
   * Called when the request waits in the backend, for the lock or for something else. Refuses callers that must not
   * wait.
   */
  private blocked(reason: Busy | BackendError): void {
    const { line } = this;
    if (reason instanceof BackendError) {
      line.failure = reason;
      for (const waiter of this.waiting)
        if (waiter.triesOnce || waiter.scoped) line.dismiss(waiter, line.unavailable(waiter));
      return;
    }
    line.foundBusy(reason, this.services.clock.now(), line.mayAnyLeave);
    this.waitsInBackend = true;
    this.refuseTriers((trier) => line.busy(trier));
    line.rest();
  }

  private get turn(): TurnToAsk {
    const { backend, runtime, clientId } = this.services;
    this.again ??= new TurnToAsk(
      (listener, heldAs: HeldType = this.type) => backend.subscribe(this.key, heldAs, clientId, listener),
      runtime,
      () => this.resume(),
      (holder) => (this.type === 'read' ? undefined : backend.takeTicket?.(this.key, holder)),
    );
    return this.again;
  }

  // ── Owner ids, and waiters registered in the backend ───────────────────────────────────────────────────────────────

  /** @returns whether the waiter gets another owner id */
  private abandonOwner(waiter: LockWaiter, attempt: Attempt): boolean {
    const isAbandoned = attempt.abandon(isRegistered(waiter));
    if (isAbandoned) waiter.renewOwner();
    return isAbandoned;
  }

  /** Gives a waiter a new owner id before it asks again, if the backend has released its present id. */
  private renewSpentOwner(waiter: LockWaiter): void {
    if (!waiter.ownerSpent) return;
    if (isRegistered(waiter)) this.formerOwners = [...this.formerOwners, waiter.owner];
    waiter.renewOwner();
  }

  private removeFormerOwners(): void {
    if (this.formerOwners.length === 0) return;
    for (const owner of this.formerOwners) unregister(this.services, { key: this.key, type: 'write', owner });
    this.formerOwners = [];
  }

  private unregister(waiter: LockWaiter): void {
    const { terms, owner } = waiter;
    if (isRegistered(waiter)) unregister(this.services, { key: this.key, type: terms.type, owner });
  }

  /** Keeps the next writer registered. */
  private keepRegistered(): void {
    const next = () => {
      const { first } = this.waiting;
      return first !== undefined && isRegistered(first) ? [first] : [];
    };
    this.heartbeat ??= new WaiterHeartbeat(this.services, this.key, 'write', next, () => this.turn.recheck());
    this.heartbeat.start();
  }

  // ── Several names, and other keepers ───────────────────────────────────────────────────────────────────────────────

  /** Reserves the queue for an attempt for several names. Returns false if the attempt would have to wait. */
  claim(): boolean {
    if (!this.line.isIdle) return false;
    this.claims++;
    return true;
  }

  /**
   * Like {@link claim}, for a detached lock that this process adopts, although callers may wait here. Settles when no
   * other request about the lock is under way.
   */
  async awaitClaim(): Promise<void> {
    this.claims++;
    if (this.attempts + this.departures === 0) return;
    await new Promise<void>((admit) => {
      this.claimants = [...this.claimants, admit];
    });
  }

  private admitClaimants(): void {
    const { claimants } = this;
    if (claimants.length === 0 || this.attempts + this.departures > 0) return;
    this.claimants = NONE;
    for (const admit of claimants) admit();
  }

  /** Refuses callers that try once: a {@link claim} will last longer, because its request was not answered. */
  claimFailed(error: BackendError): void {
    this.line.failure = error;
    this.refuseTriers((trier) => this.line.unavailable(trier));
  }

  /** Ends a {@link claim} that acquired nothing. */
  unclaim(): void {
    this.claims--;
    this.resume();
  }

  /** Ends a {@link claim} that acquired the lock. */
  fulfil(attempt: Attempt, terms: AcquisitionTerms, token: number): HeldLock {
    this.claims--;
    return this.adopt(attempt, terms, token, this);
  }

  /**
   * Holds a lock that was acquired outside this queue.
   *
   * @param keeper called instead of this queue when the lock is given back or lost
   */
  adopt(attempt: Attempt, { fixed }: AcquisitionTerms, token: number, keeper: LockKeeper): HeldLock {
    this.again?.acquired();
    const now = this.services.clock.now();
    const held = new HeldLock(keeper, attempt, fixed, { token, reserved: 0 }, Math.floor(now.monotonic));
    this.hold(held, now);
    this.serveNext();
    return held;
  }

  // ── Locks held here, and hand-offs ─────────────────────────────────────────────────────────────────────────────────

  private hold(held: HeldLock, now: Moment): void {
    this.line.failure = undefined;
    this.line.forgetHolder();
    if (this.holder === undefined) this.holder = held;
    else this.otherReaders = [...this.otherReaders, held];
    this.services.watchdog.guard(held, now);
  }

  /** Gives up a lock that is being detached. Nobody asks until the returned function is called. */
  depart(held: HeldLock): () => void {
    this.drop(held);
    this.departures++;
    return () => {
      this.departures--;
      this.resume();
    };
  }

  private drop(held: HeldLock): void {
    this.services.watchdog.drop(held);
    if (this.holder !== held) this.otherReaders = this.otherReaders.filter((other) => other !== held);
    else if (this.otherReaders.length === 0) this.holder = undefined;
    else [this.holder, ...this.otherReaders] = this.otherReaders;
  }

  forget(held: HeldLock): void {
    held.downgrade?.abandon();
    this.drop(held);
    this.resume();
  }

  lost(held: HeldLock): void {
    this.forget(held);
    noteLoss(this.services, held);
  }

  giveBack(held: HeldLock, now?: Moment, listener?: ReleaseListener): GivenBack {
    const { downgrade } = held;
    downgrade?.abandon();
    const forgotten = giveBackForgotten(this.services, held);
    if (forgotten !== undefined) return forgotten;
    const next = this.waiting.first;
    const route = next === undefined ? 'release' : this.route(held, next, now);
    return next === undefined || route === 'release' ? this.release(held, listener) : this.handOver(held, next, route);
  }

  private handOver(
    held: HeldLock,
    next: LockWaiter,
    route: 'local' | 'transfer',
  ): ReleaseOutcome | Promise<ReleaseOutcome> {
    if (route === 'transfer') return this.transfer(held, next);
    if (this.budget.mustYieldToEventLoop()) this.services.runtime.nextTurn(() => this.passOnAfterTurn(held));
    else this.passOn(held, next);
    return 'released';
  }

  /**
   * Hands a lock whose release has not been sent yet to the first caller that arrives, by the rules for a caller that
   * was already waiting.
   *
   * @returns false if the release is sent all the same
   */
  private recall(release: RecallableRelease, next: LockWaiter): boolean {
    const { held } = release;
    if (this.waiting.length > 1 || this.departures > 1 || this.claims > 0) return false;
    const now = this.services.clock.now();
    const route = this.route(held, next, now);
    if (route === 'release') return false;
    release.recall();
    this.departing = undefined;
    this.departures--;
    this.again?.releasedSilently();
    this.budget.followed();
    this.hold(held, now);
    release.passedOn(this.handOver(held, next, route));
    if (next.settled) return true;
    if (next.mayLeave) this.line.watch(next);
    this.line.rest();
    return true;
  }

  /**
   * Decides where a lock goes when its last share is given back while a caller of this process waits. `local`: to that
   * waiter, without asking the backend. `transfer`: to that waiter, by one command. `release`: out of this process.
   */
  private route(held: HeldLock, next: LockWaiter, now = this.services.clock.now()): 'local' | 'transfer' | 'release' {
    const { clock, backend } = this.services;
    // A writer that also holds the read lock may keep it after this release, so the next writer cannot have the lock
    // yet.
    if (held.downgrade !== undefined) return 'release';
    if (this.budget.isSpent(held, this.waiting.length, now)) return 'release';
    if (next.triesOnce || !isTransferable(held.type) || next.terms.type !== held.type) return 'release';
    if (mayInherit(held, next, clock, now)) return 'local';
    // Locks that a blocking backend acquired together cannot be passed on one by one.
    return held.block === undefined && backend.blocking !== undefined ? 'release' : 'transfer';
  }

  private get budget(): HandOffBudget {
    this.handOff ??= new HandOffBudget();
    return this.handOff;
  }

  /**
   * Continues after timers and sockets have had a turn. Meanwhile the lock may have been lost, and the waiter may have
   * left.
   */
  private passOnAfterTurn(held: HeldLock): void {
    if (held.lost !== undefined) return;
    const next = this.waiting.first;
    if (next !== undefined && this.route(held, next) === 'local') this.passOn(held, next);
    else this.services.events.unawaited(this.giveBack(held));
  }

  /** Lets the next waiter inherit the lock unchanged: the same owner and lease, and the next reserved token. */
  private passOn(held: HeldLock, next: LockWaiter): void {
    held.handOver();
    this.waiting.remove(next);
    this.announceHandOff(held, next);
    next.grant(held);
  }

  /** Replaces the owner in the backend by the waiter's, by one command. */
  private transfer(held: HeldLock, next: LockWaiter): Promise<ReleaseOutcome> {
    const { services, key, reserve } = this;
    const { backend, backgroundReleases } = services;
    this.renewSpentOwner(next);
    this.drop(held);
    this.departures++;
    const attempt = new Attempt(services, key, next.owner, next.terms, reserve);
    next.attempt = attempt;
    const type = next.terms.type as TransferableType; // checked by route()
    const { owner: to, leaseTime } = attempt;
    const request = backend.transfer({ key, type, from: held.owner, to, leaseTime, reserve });
    return attempt.outcome(request, (outcome) => {
      this.departures--;
      next.attempt = undefined;
      this.removeFormerOwners();
      const isUnanswered = outcome.state === 'failed' && outcome.reply === undefined;
      if (outcome.state !== 'granted') this.abandonOwner(next, outcome);
      if (isUnanswered) backgroundReleases.release(unreleasedOwner(held));
      else backgroundReleases.followUp(held);
      if (outcome.state === 'granted') this.inherited(held, next, outcome);
      this.resume();
      if (isUnanswered) return 'unreachable';
      return outcome.state === 'gone' ? 'gone' : 'released';
    });
  }

  private inherited(held: HeldLock, next: LockWaiter, outcome: Granted): void {
    const heir = new HeldLock(held.keeper, outcome, next.terms.fixed, outcome.reply, held.since);
    heir.handedOff = true;
    this.hold(heir, outcome.answeredAt);
    if (this.waiting.remove(next)) {
      this.announceHandOff(heir, next);
      next.grant(heir);
    } else this.services.events.unawaited(this.giveBack(heir));
  }

  private announceHandOff({ name, type, owner, token }: HeldLock, { terms }: LockWaiter): void {
    const { events } = this.services;
    if (!events.hasListener('handoff')) return;
    const { group, method } = terms;
    events.emit('handoff', { name, type, group, method, owner, fencingToken: token });
  }

  private release(held: HeldLock, listener?: ReleaseListener): Promise<ReleaseOutcome> | undefined {
    if (held.type !== 'read') this.again?.releasing();
    this.drop(held);
    this.departures++;
    const { latestRelease } = this;
    if (latestRelease?.held === held && latestRelease.resumable) {
      this.departing = latestRelease;
      return latestRelease.resume(listener);
    }
    const release = new RecallableRelease(this.services, held, (reply) => {
      this.departures--;
      if (this.departing === release) this.departing = undefined;
      if (this.waiting.length === 0) this.handOff?.notFollowed();
      if (held.type !== 'read') this.released(reply);
      this.resume();
    });
    this.latestRelease = this.departing = release;
    return release.send(listener);
  }

  /**
   * Lets processes that received the release go first. Readers do not take turns, since they are served side by side.
   */
  private released(reply: ReleaseReply | undefined): void {
    if (!reply?.published) this.again?.releasedSilently();
    if (!reply?.released) return;
    const again = reply.listeners > 0 ? this.turn : this.again;
    again?.yieldTo(reply.listeners, this.waiting.length > 0);
  }
}
