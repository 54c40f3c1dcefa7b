import type { AcquireReply, BackendError, Grant, HeldType, ReleaseReply } from '../../backends/lock-backend.js';
import { type Asker, Attempt, type Failed, type FoundBusy, type Granted, type Outcome } from '../ask/attempt.js';
import type { LinkedQueue } from '../collections/linked-queue.js';
import { HandOff } from '../hold/hand-off.js';
import {
  HeldLock,
  type LockKeeper,
  type LockWaiter,
  type ReleaseListener,
  tellOutcome,
  UNAWAITED,
} from '../hold/held-lock.js';
import type { RecallableRelease } from '../hold/recallable-release.js';
import { Tenure } from '../hold/tenure.js';
import { CHECKED, invariant } from '../invariants.js';
import type { Services } from '../services.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import type { Moment } from '../time/lease-clock.js';
import { Callers } from './callers.js';
import { Turn } from './turn.js';
import { WaitInBackend } from './wait-in-backend.js';
import type { AskingQueue, WayOfAsking } from './way-of-asking.js';
import { type AskingKind, typeOf, wayOf } from './ways-of-asking.js';

const NONE: readonly never[] = [];

type State = 'claimed' | 'departing' | 'resting' | 'held' | 'asking' | 'idle';

/**
 * One lock in one process: its waiting callers, its leases in this process, the requests under way, and the choice of
 * the next caller. All locks except fair locks use it. What differs from one kind of lock to another is up to its
 * {@link WayOfAsking}. It exists for as long as it has something to do.
 *
 * Its behaviour at any moment follows from its state, the first of these that applies (only `serveNext` decides):
 *
 * 1. `claimed`: an attempt for several names, or an adoption, has reserved the lock. Nobody else asks until `unclaim`
 *    or `fulfil`.
 * 2. `departing`: a release, a transfer or a detachment is unanswered. Nobody asks, because the answer would say that
 *    this process holds the lock. A release that waits to be sent is recalled for a caller that arrives (`recall`), and
 *    goes to it as if that caller had been waiting.
 * 3. `resting`: another process holds the lock, or the backend does not answer. Turn says when to try again: after a
 *    message, when the holder's lease ends, or after a pause. A backend with its own queue (WaitInBackend) answers
 *    instead. A message that certainly grants the lock leads to `held` (`takeGrant`).
 * 4. `held`: a lease of this process holds the lock. Callers wait for it here. When the last share is given back
 *    (`giveBack`), HandOff decides where the lock goes: to the first waiter, or out of this process.
 * 5. `asking`: the first waiter asks the backend. The answer grants the lock, says that it is busy, or never comes.
 * 6. `idle`: the first waiter asks. If nobody waits, the queue ends.
 */
export class LockQueue implements LockKeeper, AskingQueue, Asker<LockWaiter, AcquireReply> {
  readonly type: HeldType;
  readonly callers: Callers;
  readonly turn: Turn;
  readonly tenure: Tenure;
  private readonly way: WayOfAsking;

  // Requests under way.
  /** The number of unanswered acquisitions. */
  attempts = 0;
  /** The number of attempts for several names, and of adoptions, that have reserved the lock. */
  private claims = 0;
  /** Called when no request is under way any more, while the lock is claimed. */
  private claimants: readonly (() => void)[] = NONE;
  /**
   * The head's acquisition until it is answered. Callers that arrive before it is sent raise its reserve, because
   * hand-offs need tokens.
   */
  private asking: Attempt | undefined = undefined;
  /** Set for a backend in which callers wait. */
  private readonly inBackend: WaitInBackend | undefined;

  // Created when first needed: most locks are held by one caller without contention.
  private handOffs: HandOff | undefined = undefined;

  /** @param onIdle called when the queue has nothing left to do */
  constructor(
    private readonly services: Services,
    readonly name: string,
    readonly key: string,
    readonly kind: AskingKind,
    private readonly onIdle: (queue: LockQueue) => void,
  ) {
    this.way = wayOf(kind);
    this.type = typeOf(kind);
    this.callers = new Callers(services, this);
    this.turn = new Turn(services, this);
    this.tenure = new Tenure(services, this);
    const { blocking } = services.backend;
    this.inBackend = blocking && new WaitInBackend(blocking, this.callers, services.clock);
  }

  // ── State ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  private get state(): State {
    if (this.claims > 0) return 'claimed';
    if (this.tenure.isDeparting && !this.way.asksBehindReleases) return 'departing';
    if (this.turn.resting) return 'resting';
    if (this.tenure.isHeld) return 'held';
    return this.attempts > 0 ? 'asking' : 'idle';
  }

  private check(): void {
    const { attempts, claims, asking } = this;
    invariant(attempts >= 0, 'more acquisitions were answered than sent');
    invariant(claims >= 0, 'more claims have ended than begun');
    invariant(attempts > 0 || !this.waitsInBackend, 'a request waits in the backend, but none is under way');
    invariant(attempts > 0 || asking === undefined, 'the head asks, but no request is under way');
  }

  get waiting(): LinkedQueue<LockWaiter> {
    return this.callers.waiters;
  }

  get holders(): readonly HeldLock[] {
    return this.tenure.holders;
  }

  /** The owner whose release is unanswered, if nobody else holds the lock or waits for it here. */
  get leaving(): string | undefined {
    return this.waiting.length === 0 && this.claims === 0 ? this.tenure.leaving : undefined;
  }

  get isAsking(): boolean {
    return this.attempts > 0 || this.claims > 0 || this.tenure.isDeparting;
  }

  get askedAt(): number | undefined {
    return this.asking?.sent.monotonic;
  }

  get isUndecided(): boolean {
    return this.inBackend !== undefined && this.attempts > 0 && !this.inBackend.waits;
  }

  get waitsInBackend(): boolean {
    return this.inBackend?.waits === true;
  }

  // ── Callers come and go ────────────────────────────────────────────────────────────────────────────────────────────

  /** Adds a waiter, which is served or refused later. */
  enqueue(waiter: LockWaiter): void {
    if (waiter.triesOnce && this.isBusyFor(waiter)) return waiter.refuse(this.callers.refusal(waiter));
    const { waiting } = this;
    this.callers.add(waiter);
    const { recallable } = this.tenure;
    if (recallable !== undefined && this.recall(recallable, waiter)) return;
    if (this.asking?.reserve === 0) this.asking.reserve = this.way.reserve(this, this.asking.type);
    if (waiter.mayLeave) this.callers.watch(waiter);
    if (waiting.length > 1 || this.tenure.isHeld) this.callers.rest();
    if (waiting.first === waiter || !this.way.servesFirstOnly) this.serveNext();
  }

  /** Removes the traces of waiters in the backend: at once, or when their pending requests are answered. */
  left(waiters: readonly LockWaiter[]): void {
    this.way.left?.(waiters);
    if (this.callers.isEmpty) {
      this.turn.stopResting();
      // Nobody waits for its answer any more.
      if (this.asking !== undefined) this.inBackend?.stop(this.asking);
    }
    if (waiters.some(({ attempt }) => attempt === undefined)) this.turn.checkPlace();
    this.services.runtime.detached(() => this.resume());
  }

  /** Whether a caller may ask now, or need not wait for the holders here. */
  private admits({ terms }: LockWaiter): boolean {
    return !this.tenure.isHeld || this.way.asksBeside(terms, this.tenure);
  }

  /** Whether a single try would fail, as far as this process knows. */
  private isBusyFor(waiter: LockWaiter): boolean {
    if (!this.admits(waiter)) return true;
    const isResting = this.waitsInBackend || this.turn.resting;
    return this.waiting.length > 0 && (isResting || (this.attempts === 0 && this.claims === 0));
  }

  awaitsAnswer({ attempt }: LockWaiter): boolean {
    return attempt !== undefined;
  }

  // ── Serving waiters ────────────────────────────────────────────────────────────────────────────────────────────────

  private serveNext(): void {
    if (CHECKED) this.check();
    this.way.arrange?.(this);
    if (this.waiting.length === 0 && this.turn.hasPlace) this.turn.emptied();
    const { state } = this;
    if (state === 'claimed') return this.admitClaimants();
    if (state === 'departing' || state === 'resting') return;
    const { first } = this.waiting;
    if (first === undefined) return;
    if (this.admits(first)) return this.way.askNext(this, first);
    this.callers.refuseTriers();
    if (this.services.unlimitedWaits.isDue) this.callers.checkLimit();
  }

  /** Continues after a request, a hold or a pause has ended. */
  resume(): void {
    this.serveNext();
    this.endIfIdle();
  }

  endIfIdle(): void {
    if (!this.callers.isIdle) return;
    if (this.turn.outlivesCallers()) return;
    this.turn.close();
    this.callers.close();
    this.onIdle(this);
  }

  // ── Asking the backend ─────────────────────────────────────────────────────────────────────────────────────────────

  reserveBehind(waiters: number): number {
    return this.waiting.length > waiters ? this.handOff.reserve : (this.handOffs?.reserve ?? 0);
  }

  ask(waiter: LockWaiter): void {
    const attempt = this.send(waiter);
    this.asking ??= attempt;
  }

  askBeside(waiter: LockWaiter): void {
    this.send(waiter);
  }

  private send(waiter: LockWaiter): Attempt {
    const { services, key, way, turn } = this;
    const changesBefore = turn.begin();
    this.renewSpentOwner(waiter);
    // A caller that tries once does not wait.
    if (!waiter.triesOnce) way.enterLine(turn, waiter, this.attempts === 0);
    const { terms, owner } = waiter;
    const reserve = way.reserve(this, terms.type);
    const isInLine = turn.isPlace(owner);
    const waiterTimeout = isInLine ? services.waiterTimeout : 0;
    const nonce = isInLine && way.believesGrants ? turn.place.newNonce() : undefined;
    const lease = isInLine ? turn.place.grantLease(waiter) : undefined;
    const attempt = new Attempt(services, key, owner, terms, reserve, waiterTimeout, waiter.follows, nonce, lease);
    attempt.changesBefore = changesBefore;
    if (isInLine) turn.place.asks(attempt);
    waiter.attempt = attempt;
    way.complete?.(attempt, waiter);
    this.attempts++;
    const request =
      this.inBackend === undefined || waiter.triesOnce
        ? services.backend.acquire(attempt)
        : this.inBackend.ask(attempt);
    attempt.send(request, this, waiter);
    return attempt;
  }

  /** Called when the request of a waiter has ended. */
  settled(outcome: Outcome, waiter: LockWaiter): void {
    if (CHECKED) invariant(waiter.attempt === outcome, 'an answer is for another request than the one that is sent');
    this.attempts--;
    this.callers.failure = waiter.attempt = undefined;
    // Not if the head has left: readers behind it may ask beside its request.
    if (this.asking === outcome) this.asking = undefined;
    this.inBackend?.answered();
    this.turn.leaveSpentPlaces();
    if (outcome.state === 'granted') return this.granted(waiter, outcome);
    this.way.notGranted?.(outcome, waiter);
    if (outcome.state === 'busy') this.foundBusy(waiter, outcome);
    else if (outcome.state === 'failed') this.unanswered(waiter, outcome);
    else {
      // The lock was removed by force: the waiter asks again.
      this.abandonOwner(waiter, outcome);
      this.resume();
    }
  }

  private granted(waiter: LockWaiter, outcome: Granted): void {
    const { reply, answeredAt } = outcome;
    this.turn.acquired();
    const held = new HeldLock(this, outcome, waiter.terms.fixed, reply, Math.floor(answeredAt.monotonic));
    this.way.granted?.(this, waiter, held, reply);
    this.hold(held, answeredAt);
    this.serve(waiter, held);
    this.serveNext();
  }

  /** Grants the lock to a waiter, or gives it back if he has left. */
  private serve(waiter: LockWaiter, held: HeldLock): void {
    if (this.waiting.remove(waiter)) waiter.grant(held);
    else this.services.events.unawaited(this.giveBack(held, UNAWAITED));
  }

  /** Whether a message may grant the lock to the first waiter, so that it begins without asking. */
  mayBeGranted(first: LockWaiter): boolean {
    if (!this.way.believesGrants || first.terms.fixed || first.triesOnce || first.ownerSpent) return false;
    if (this.state !== 'resting' || this.attempts > 0 || !this.admits(first)) return false;
    // Without a connection, it could neither be renewed nor released. The request says why.
    return this.services.backend.connectionError === undefined;
  }

  takeGrant(first: LockWaiter, owner: string, grant: Grant, begun: Moment, now: Moment): void {
    const { services } = this;
    const { type, leaseTime, permits } = first.terms;
    const { waiterTimeout } = services;
    const acquisition = { type, owner, leaseTime, sent: begun, lateCopiesUntil: undefined, permits, waiterTimeout };
    const held = new HeldLock(this, acquisition, false, grant, Math.floor(now.monotonic));
    services.pendingAttempts.granted();
    this.turn.acquired();
    this.way.granted?.(this, first, held);
    this.hold(held, now);
    this.serve(first, held);
    this.serveNext();
  }

  private foundBusy(waiter: LockWaiter, outcome: FoundBusy): void {
    const { reply, answeredAt } = outcome;
    this.callers.foundBusy(reply, answeredAt, waiter);
    if (outcome.inDoubt) this.abandonOwner(waiter, outcome);
    else if (outcome.ownerSpent) waiter.ownerSpent = true;
    if (waiter.settled) this.turn.checkPlace();
    else {
      const refusal = this.way.refusal?.(this, waiter, reply);
      if (refusal !== undefined) {
        this.turn.endPlace(outcome.owner);
        return this.callers.dismiss(waiter, refusal);
      }
      if (this.tenure.asksBehindRelease(waiter, reply, () => this.resume())) return;
    }
    this.callers.refuseTriers();
    if (this.waiting.length > 0 && this.inBackend === undefined) {
      this.callers.rest();
      this.turn.busy(reply, outcome.changesBefore);
    }
    this.resume();
  }

  private unanswered(waiter: LockWaiter, outcome: Failed): void {
    const { error } = outcome;
    this.abandonOwner(waiter, outcome);
    if (waiter.settled) this.turn.checkPlace();
    this.callers.failed(waiter, error);
    this.callers.refuseTriers();
    if (!this.callers.isEmpty && error.kind === 'unavailable' && this.turn.failed()) this.callers.reportFailure();
    this.resume();
  }

  // ── Owner ids, and the place in the line ───────────────────────────────────────────────────────────────

  /** @returns whether the waiter gets another owner id */
  private abandonOwner(waiter: LockWaiter, attempt: Attempt): boolean {
    const hasPlace = this.turn.isPlace(attempt.owner);
    if (!attempt.abandon(hasPlace)) return false;
    if (hasPlace) this.turn.place.forget();
    waiter.renewOwner();
    return true;
  }

  /** Gives a waiter a new owner id before it asks again, if the backend has released its present id. */
  renewSpentOwner(waiter: LockWaiter): void {
    const { turn } = this;
    const { placeOwner } = turn;
    if (placeOwner !== undefined && this.way.reservesPlace) waiter.dropPlace(placeOwner);
    if (!waiter.ownerSpent) return;
    if (turn.isPlace(waiter.owner)) turn.place.spend();
    waiter.renewOwner();
  }

  /** Handles a forced release by this process. */
  removed(owners: readonly string[]): void {
    this.turn.removed(owners);
  }

  // ── Several names, and other keepers ───────────────────────────────────────────────────────────────────────────────

  /** Reserves the queue for an attempt for several names. Returns false if the attempt would have to wait. */
  claim(): boolean {
    if (!this.callers.isIdle) return false;
    this.claims++;
    return true;
  }

  /**
   * Like {@link claim}, for a detached lock that this process adopts, although callers may wait here. Settles when no
   * other request about the lock is under way.
   */
  async awaitClaim(): Promise<void> {
    this.claims++;
    if (this.attempts === 0 && !this.tenure.isDeparting) return;
    await new Promise<void>((admit) => {
      this.claimants = [...this.claimants, admit];
    });
  }

  private admitClaimants(): void {
    const { claimants } = this;
    if (claimants.length === 0 || this.attempts > 0 || this.tenure.isDeparting) return;
    this.claimants = NONE;
    for (const admit of claimants) admit();
  }

  /** Refuses callers that try once: a {@link claim} will last longer, because its request was not answered. */
  claimFailed(error: BackendError): void {
    this.callers.noteFailure(error);
    this.callers.refuseTriers();
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
    this.turn.acquired();
    const now = this.services.clock.now();
    const held = new HeldLock(keeper, attempt, fixed, { token, reserved: 0 }, Math.floor(now.monotonic));
    this.hold(held, now);
    this.serveNext();
    return held;
  }

  // ── The lock while it is held here ─────────────────────────────────────────────────────────────────────────────────

  hold(held: HeldLock, now: Moment): void {
    this.callers.failure = undefined;
    this.callers.forgetHolder();
    this.turn.got(held, this.way.keepsPlace(held));
    this.tenure.hold(held, now);
  }

  depart(held: HeldLock): () => void {
    const { tenure } = this;
    tenure.drop(held);
    tenure.beginDeparture();
    return () => {
      tenure.endDeparture();
      this.turn.remember(held);
      this.resume();
    };
  }

  forget(held: HeldLock): void {
    this.tenure.forget(held);
    this.resume();
  }

  lost(held: HeldLock): void {
    this.turn.remember(held);
    this.forget(held);
    this.tenure.reportLoss(held);
  }

  giveBack(held: HeldLock, listener: ReleaseListener, now?: Moment): Promise<void> | undefined {
    const { tenure } = this;
    held.downgrade?.abandon();
    const forgotten = tenure.giveBackForgotten(held);
    if (forgotten !== undefined) return tellOutcome(listener, forgotten);
    const next = this.heir;
    const passed = next !== undefined && this.handOff.pass(held, next, now);
    if (passed === false) return tenure.giveBack(held, listener);
    if (this.waiting.length === 0) this.turn.emptied();
    return tellOutcome(listener, passed);
  }

  /** Who inherits the lock: the first waiter that does not ask itself (for a permit, say), or else the first one. */
  get heir(): LockWaiter | undefined {
    const { waiting } = this;
    if (waiting.first?.attempt === undefined) return waiting.first;
    for (const waiter of waiting) if (waiter.attempt === undefined) return waiter;
    return waiting.first;
  }

  released(held: HeldLock, reply: ReleaseReply | undefined): void {
    this.turn.remember(held);
    if (this.waiting.length === 0) this.handOffs?.notFollowed();
    if (reply !== undefined && reply.listeners > 0 && this.way.leavesToOthers(held)) this.turn.leaveToOthers();
    this.resume();
  }

  /** @returns false if the lock leaves this process all the same */
  private recall(release: RecallableRelease, next: LockWaiter): boolean {
    if (this.waiting.length > 1 || this.claims > 0 || !this.handOff.recall(release, next)) return false;
    if (next.settled) return true;
    if (next.mayLeave) this.callers.watch(next);
    this.callers.rest();
    return true;
  }

  recalled(release: RecallableRelease, now: Moment): void {
    this.tenure.recall(release);
    this.hold(release.held, now);
  }

  transferred(waiter: LockWaiter, outcome: Outcome): void {
    waiter.attempt = undefined;
    if (outcome.state !== 'granted') this.abandonOwner(waiter, outcome);
  }

  passes(held: HeldLock, next: LockWaiter): boolean {
    return this.way.passes(held, next, this.tenure);
  }

  private get handOff(): HandOff {
    this.handOffs ??= new HandOff(this.services, this, this.tenure);
    return this.handOffs;
  }
}
