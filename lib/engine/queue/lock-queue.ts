import { HEAD_START, hasLine, type LineBackend, LONGEST_GRANT, SHORTEST_GRANT } from '../../backends/line-backend.js';
import {
  type AcquireReply,
  BackendError,
  type Busy,
  type HeldType,
  isReadWrite,
  type NewestCall,
  type ReleaseReply,
  type Subscription,
  type Wake,
} from '../../backends/lock-backend.js';
import { type Asker, Attempt, type Failed, type FoundBusy, type Granted, type Outcome } from '../ask/attempt.js';
import type { LinkedQueue } from '../collections/linked-queue.js';
import { HandOff } from '../hold/hand-off.js';
import { type GivenBack, HeldLock, type LockKeeper, type LockWaiter, type ReleaseListener } from '../hold/held-lock.js';
import type { Moment } from '../hold/lease-clock.js';
import type { RecallableRelease } from '../hold/recallable-release.js';
import { Tenure } from '../hold/tenure.js';
import { CHECKED, invariant } from '../invariants.js';
import type { Services } from '../services.js';
import { type AcquisitionTerms, MOST_PERMITS } from '../terms/lock-options.js';
import { WaitingLine } from '../wait/waiting-line.js';
import { WhenToAsk } from '../wait/when-to-ask.js';
import { PlaceInLine } from './place-in-line.js';
import type { QueueKind } from './queue-table.js';
import { unregister } from './waiter-registration.js';

const NONE: readonly never[] = [];

/** Within how many milliseconds of a release those ask who wait for a lock without a line. */
const SPREAD = 10;

const FIRST_CALL: NewestCall = { superseded: 0, order: undefined };

type Message = Wake & { readonly kind: 'message' };
type State = 'claimed' | 'departing' | 'resting' | 'held' | 'asking' | 'idle';

/**
 * One lock in one process: its waiting callers, its leases in this process, the request under way, and the choice of
 * the next caller. All locks except fair locks use it. It exists for as long as it has something to do.
 *
 * Its behaviour at any moment follows from its state, the first of these that applies (only `serveNext` decides):
 *
 * 1. `claimed`: an attempt for several names, or an adoption, has reserved the lock. Nobody else asks until `unclaim`
 *    or `fulfil`.
 * 2. `departing`: a release, a transfer or a detachment is unanswered. Nobody asks, because the answer would say that
 *    this process holds the lock. A release that waits to be sent is recalled for a caller that arrives (`recall`), and
 *    goes to it as if that caller had been waiting. Of permits, only those that are departing are not asked for.
 * 3. `resting`: another process holds the lock, or the backend does not answer. WhenToAsk says when to try again: after
 *    a message, when the holder's lease ends, or after a pause. A backend with its own queue (`blocking`) answers
 *    instead. A message that certainly grants the lock leads to `held` (`takeGrant`).
 * 4. `held`: a lease of this process holds the lock. Callers wait for it here; readers join readers. When the last
 *    share is given back (`giveBack`), HandOff decides where the lock goes: to the first waiter, or out of this process.
 * 5. `asking`: the first waiter asks the backend; readers at the head ask side by side. The answer grants the lock,
 *    says that it is busy, or never comes.
 * 6. `idle`: the first waiter asks. If nobody waits, the queue ends.
 */
export class LockQueue implements LockKeeper, Asker<LockWaiter, AcquireReply> {
  readonly type: HeldType;
  readonly line: WaitingLine;
  private readonly place: PlaceInLine;
  private readonly tenure: Tenure;

  // Requests under way.
  /** The number of unanswered acquisitions. */
  private attempts = 0;
  /** The number of attempts for several names, and of adoptions, that have reserved the lock. */
  private claims = 0;
  /** Called when no request is under way any more, while the lock is claimed. */
  private claimants: readonly (() => void)[] = NONE;
  /**
   * The head's acquisition until it is answered. Callers that arrive before it is sent raise its reserve, because
   * hand-offs need tokens.
   */
  private asking: Attempt | undefined = undefined;
  /**
   * A reader that asks, as do all waiters in front of it. So nobody visits them again when another reader arrives, or one
   * of them is served.
   */
  private lastReader: LockWaiter | undefined = undefined;
  /** Whether the request waits in the backend until another holder releases the lock. */
  waitsInBackend = false;

  // Created when first needed: most locks are held by one caller without contention.
  private again: WhenToAsk | undefined = undefined;
  private handOffs: HandOff | undefined = undefined;

  /**
   * Whether callers that try once may be among the waiters. It saves a search through thousands of waiters when there
   * are none.
   */
  private hasTriers = false;
  /** Whether the latest release of which others heard left the lock to them. */
  private leavesLock = false;
  /** Whether this process listens for its place in the line, or for all releases. */
  private listensInLine = false;
  /**
   * For permits: how many callers ask side by side. After a busy answer it is one, because the next ones would be refused
   * as well, and it doubles with each further permit that is granted.
   */
  private sideBySide = MOST_PERMITS;

  /** @param onIdle called when the queue has nothing left to do */
  constructor(
    private readonly services: Services,
    readonly name: string,
    readonly key: string,
    readonly kind: QueueKind,
    private readonly onIdle: (queue: LockQueue) => void,
  ) {
    this.type = kind === 'newest' ? 'reentrant' : kind;
    this.line = new WaitingLine(services, this);
    this.place = new PlaceInLine(services, this);
    this.tenure = new Tenure(services, this);
  }

  // ── State ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  private get state(): State {
    if (this.claims > 0) return 'claimed';
    if (this.tenure.isDeparting && this.type !== 'permits') return 'departing';
    if (this.again?.resting) return 'resting';
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
    return this.line.waiters;
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
    return this.services.backend.blocking !== undefined && this.attempts > 0 && !this.waitsInBackend;
  }

  // ── Callers come and go ────────────────────────────────────────────────────────────────────────────────────────────

  /** Adds a waiter, which is served or refused later. */
  enqueue(waiter: LockWaiter): void {
    if (waiter.triesOnce && this.isBusyFor(waiter)) return waiter.refuse(this.line.refusal(waiter));
    const { waiting } = this;
    waiting.push(waiter);
    const { recallable } = this.tenure;
    if (recallable !== undefined && this.recall(recallable, waiter)) return;
    this.hasTriers ||= waiter.triesOnce;
    if (this.asking?.reserve === 0) this.asking.reserve = this.reserve;
    if (waiter.mayLeave) this.line.watch(waiter);
    if (waiting.length > 1 || this.tenure.isHeld) this.line.rest();
    if (waiting.first === waiter || !this.isOneByOne) this.serveNext();
  }

  /** Removes the traces of waiters in the backend: at once, or when their pending requests are answered. */
  left(waiters: readonly LockWaiter[]): void {
    if (waiters.some((waiter) => waiter === this.lastReader)) this.lastReader = undefined;
    if (this.line.isEmpty) {
      this.again?.onEmpty();
      // Stops the request that waits in the backend, because nobody waits for its answer any more.
      if (this.asking !== undefined) this.services.backend.blocking?.stop(this.asking);
    }
    if (waiters.some(({ attempt }) => attempt === undefined)) this.checkPlace();
    this.services.runtime.detached(() => this.resume());
  }

  /** Whether only the first waiter can be served, so that a caller behind it changes nothing. */
  private get isOneByOne(): boolean {
    return this.kind === 'reentrant' || this.kind === 'fenced';
  }

  /** Whether a single try would fail, as far as this process knows. */
  private isBusyFor(waiter: LockWaiter): boolean {
    if (!this.tenure.admits(waiter.terms)) return true;
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
    if (CHECKED) this.check();
    if (this.kind === 'newest') this.supersede();
    if (this.place.exists) this.leaveEmptyLine();
    const { state } = this;
    if (state === 'claimed') return this.admitClaimants();
    if (state === 'departing' || state === 'resting') return;
    const head = this.waiting.first;
    if (head === undefined) return;
    if (this.kind === 'newest') return this.askAsNewest(head);
    if (!this.tenure.admits(head.terms)) {
      if (this.hasTriers) this.refuseTriers((trier) => this.line.busy(trier));
      if (this.services.unlimitedWaits.isDue) this.line.checkLimit();
      return;
    }
    if (this.type === 'permits') return this.askForPermits();
    if (head.terms.type !== 'read') {
      if (state === 'idle') this.asking = this.ask(head);
      return;
    }
    this.askForReaders(head);
  }

  /** Lets the readers in front ask side by side. */
  private askForReaders(head: LockWaiter): void {
    let reader: LockWaiter | undefined = this.lastReader === undefined ? head : this.lastReader.next;
    for (; reader?.terms.type === 'read'; reader = reader.next) {
      if (reader.attempt === undefined) {
        // The others follow the reader that asks under the place, and nobody else may ask under it meanwhile. A reader
        // that would enter the line waits until it can: without a place it would be told of no release, and so ask again
        // at once.
        if (this.attempts > 0 && (this.place.exists || this.mayEnterLine(reader))) return;
        this.ask(reader);
      }
      this.lastReader = reader;
    }
  }

  /** Lets as many callers ask side by side as may hold the lock beside its holders here. */
  private askForPermits(): void {
    for (const waiter of this.waiting) {
      if (this.attempts >= Math.min(Math.max(1, this.sideBySide), this.roomFor(waiter))) return;
      if (waiter.attempt !== undefined) continue;
      const attempt = this.ask(waiter);
      this.asking ??= attempt;
    }
  }

  /**
   * Asks also while this process holds the lock, so that callers of other processes supersede this one. Until the request
   * under way is answered, nobody knows whether its caller has the lock.
   */
  private askAsNewest(newest: LockWaiter): void {
    if (this.attempts === 0) this.asking = this.ask(newest);
  }

  /** Lets the newest caller take the place of those that wait before it, unless their request is under way. */
  private supersede(): void {
    const { waiting } = this;
    const newest = waiting.last;
    if (newest === undefined || waiting.first === newest) return;
    for (const waiter of waiting) {
      if (waiter === newest || waiter.attempt !== undefined) continue;
      // What has a place is counted by the backend when the place is taken over.
      const { superseded, order } = newestCall(waiter);
      const others = order === undefined ? superseded + 1 : 0;
      newest.newest = { superseded: newestCall(newest).superseded + others, order: undefined };
      waiting.remove(waiter);
      waiter.refuse(this.line.superseded(waiter));
    }
    // During an outage, it waits for the next try of the one before.
    if (this.attempts === 0 && this.line.failure === undefined) this.again?.onEmpty();
  }

  /** How many more owners of this process may hold the lock, according to this waiter. */
  private roomFor({ terms }: LockWaiter): number {
    return (terms.permits ?? 1) - this.tenure.mostHolders;
  }

  /** Continues after a request, a hold or a pause has ended. */
  resume(): void {
    this.serveNext();
    this.endIfIdle();
  }

  endIfIdle(): void {
    if (!this.line.isIdle) return;
    const { again } = this;
    const { isDraining } = this.services.admission;
    if (!isDraining && again?.standsBack) return;
    if (!isDraining && again !== undefined && again.usefulFor > 0) return again.whenUseless(() => this.endIfIdle());
    again?.close();
    this.place.close();
    this.line.close();
    this.onIdle(this);
  }

  // ── Asking the backend ─────────────────────────────────────────────────────────────────────────────────────────────

  private get reserve(): number {
    const { first } = this.waiting;
    const most = first === undefined ? 1 : Math.max(1, this.roomFor(first));
    return this.waiting.length > most ? this.handOff.reserve : (this.handOffs?.reserve ?? 0);
  }

  private ask(waiter: LockWaiter): Attempt {
    const { services, key } = this;
    const changesBefore = this.again?.begin() ?? 0;
    this.renewSpentOwner(waiter);
    const formerPlace = this.place.owner;
    this.enterLine(waiter);
    const { terms, owner } = waiter;
    const reserve = terms.type === 'read' ? 0 : this.reserve;
    const isInLine = this.place.isOf(owner);
    const waiterTimeout = isInLine ? services.waiterTimeout : 0;
    // How many calls the newest one has superseded is only in an answer.
    const nonce = isInLine && !isReadWrite(terms.type) && !terms.newest ? this.place.newNonce() : undefined;
    const lease = isInLine ? this.grantLease(waiter) : undefined;
    const attempt = new Attempt(services, key, owner, terms, reserve, waiterTimeout, waiter.follows, nonce, lease);
    attempt.changesBefore = changesBefore;
    if (isInLine) this.place.asks(attempt);
    waiter.attempt = attempt;
    if (terms.newest) attempt.newest = newestCall(waiter);
    this.attempts++;
    attempt.send(this.request(attempt, waiter), this, waiter);
    if (this.kind === 'newest' && formerPlace !== undefined && !this.place.isOf(formerPlace))
      unregister(services, { key, type: this.type, owner: formerPlace });
    return attempt;
  }

  /** With which lease the place is granted the lock: who wants another one asks for it. */
  private grantLease({ terms }: LockWaiter): number {
    const lease = Math.min(terms.leaseTime, this.services.watchdog.leaseTime);
    return Math.min(LONGEST_GRANT, Math.max(SHORTEST_GRANT, lease));
  }

  private request(attempt: Attempt, { triesOnce }: LockWaiter): Promise<AcquireReply> {
    const { backend } = this.services;
    if (backend.blocking === undefined || triesOnce) return backend.acquire(attempt);
    return backend.blocking.acquire(attempt, (reason) => this.blocked(reason));
  }

  /** Called when the request of a waiter has ended. */
  settled(outcome: Outcome, waiter: LockWaiter): void {
    if (CHECKED) invariant(waiter.attempt === outcome, 'an answer is for another request than the one that is sent');
    this.attempts--;
    this.line.failure = waiter.attempt = undefined;
    // Not if the head has left: readers behind it may ask beside its request.
    if (this.asking === outcome) this.asking = undefined;
    if (outcome.state !== 'granted' || waiter === this.lastReader) this.lastReader = undefined;
    this.waitsInBackend = false;
    this.place.leaveSpent();
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
    if (this.type === 'permits') this.sideBySide = Math.max(1, this.sideBySide * 2);
    if (outcome.type === 'read' && this.place.isOf(outcome.owner)) this.letFollow();
    const held = new HeldLock(this, outcome, waiter.terms.fixed, reply, Math.floor(answeredAt.monotonic));
    this.hold(held, answeredAt);
    if (waiter.terms.newest) held.superseded = (reply.newest ?? newestCall(waiter)).superseded;
    this.serve(waiter, held);
    this.serveNext();
  }

  /** Grants the lock to a waiter, or gives it back if he has left. */
  private serve(waiter: LockWaiter, held: HeldLock): void {
    if (this.waiting.remove(waiter)) waiter.grant(held);
    else this.services.events.unawaited(this.giveBack(held));
  }

  /** Lets the readers right behind the one whose turn has come in with it, although others may be in line by now. */
  private letFollow(): void {
    for (const reader of this.waiting) {
      if (reader.terms.type !== 'read') return;
      reader.follows = true;
    }
  }

  /** Listens for what concerns the place of this process in the line. */
  private listenInLine(line: LineBackend, listener: (wake: Wake) => void): Subscription {
    const { key, services } = this;
    return line.listen(key, services.clientId, (wake) => {
      if (wake.kind !== 'message') return listener(wake);
      if (this.isForNobody(wake.owner)) unregister(services, { key, type: this.type, owner: wake.owner });
      if (!this.takeGrant(line, wake) && !this.isForOthers(wake)) listener(wake);
    });
  }

  /**
   * Takes the lock if a message grants it to this process's place with the lease that the head wants, and it is certain
   * that most of it is left. The lease counts from before the request with this nonce was sent: a grant can only be later,
   * whatever the clocks of servers do. Only if a short lease would be nearly over then, the server's clock counts, too.
   *
   * @returns false if the backend has to be asked
   */
  private takeGrant(line: LineBackend, { owner, grant }: Message): boolean {
    const { services, place, tenure } = this;
    const head = this.waiting.first;
    if (owner === undefined || grant === undefined || head === undefined) return false;
    const sent = place.isOf(owner) ? place.sentWith(grant.nonce) : undefined;
    const { type, leaseTime, permits, fixed, newest } = head.terms;
    const isWanted = leaseTime <= grant.lease && this.grantLease(head) === grant.lease;
    if (sent === undefined || !place.isFor(head) || fixed || newest || !isWanted) return false;
    if (this.state !== 'resting' || this.attempts > 0 || !tenure.admits(head.terms)) return false;
    if (head.triesOnce || head.ownerSpent) return false;
    const { backend, clock } = services;
    // Without a connection, it could neither be renewed nor released. The request says why.
    if (backend.connectionError !== undefined) return false;
    const now = clock.now();
    const most = (leaseTime * 2) / 3;
    const granted = clock.after(sent, grant.after);
    const begun = clock.left(sent, leaseTime, now) < most ? granted : sent;
    // A lease that begins in the future: the server's clock was advanced, or this machine was suspended.
    if (granted.monotonic > now.monotonic || clock.left(begun, leaseTime, now) < most || clock.diverged(begun))
      return false;

    const { waiterTimeout } = services;
    const acquisition = {
      type,
      owner,
      leaseTime,
      sent: begun,
      lateCopiesUntil: undefined,
      permits,
      waiterTimeout,
    };
    const held = new HeldLock(this, acquisition, fixed, grant, Math.floor(now.monotonic));
    line.begun(grant);
    head.dropPlace(held.owner);
    services.pendingAttempts.granted();
    this.again?.acquired();
    if (type === 'permits') this.sideBySide = Math.max(1, this.sideBySide * 2);
    this.hold(held, now);
    this.serve(head, held);
    this.serveNext();
    return true;
  }

  /**
   * Whether a message is for a place of another queue of this process: all its queues for one name hear each of them. If
   * each asked, one request could wake the next without end, because a request may tell the first place of the line.
   */
  private isForOthers({ owner }: Message): boolean {
    const { place } = this;
    return owner !== undefined && place.exists && !place.isOf(owner);
  }

  /** Whether a message is for a place that this process has left or used up, which a failover may have brought back. */
  private isForNobody(owner: string | undefined): owner is string {
    return owner !== undefined && this.services.formerPlaces.has(owner);
  }

  private foundBusy(waiter: LockWaiter, outcome: FoundBusy): void {
    const { reply, answeredAt } = outcome;
    waiter.follows = false;
    this.line.foundBusy(reply, answeredAt, waiter);
    if (reply.newest !== undefined) waiter.newest = reply.newest;
    this.sideBySide = 0; // it is one again after the next grant
    if (outcome.inDoubt) this.abandonOwner(waiter, outcome);
    else if (outcome.ownerSpent) waiter.ownerSpent = true;
    if (waiter.settled) this.checkPlace();
    else if (reply.superseded) {
      if (this.place.isOf(outcome.owner)) this.place.end();
      return this.line.dismiss(waiter, this.line.superseded(waiter));
    } else if (this.tenure.asksBehindRelease(waiter, reply, () => this.resume())) return;
    this.refuseTriers((trier) => this.line.busy(trier));
    if (this.waiting.length > 0 && this.services.backend.blocking === undefined) {
      this.whenToAsk.busy(reply.remaining, reply.heldAs, outcome.changesBefore);
      this.line.rest();
      if (this.place.exists) this.place.keep();
      // Without a place, nobody is told of a release. It was given up, or the caller that asked tries only once.
      const isUntold = this.hasLine && !this.place.exists && this.whenToAsk.listens;
      // Another caller asked, and this process has perhaps heard before the request that the place was granted the lock.
      const isGranted = this.place.isOf(reply.holder);
      if (isUntold || isGranted) this.whenToAsk.recheck();
    }
    this.resume();
  }

  private unanswered(waiter: LockWaiter, outcome: Failed): void {
    const { error } = outcome;
    this.abandonOwner(waiter, outcome);
    if (waiter.settled) this.checkPlace();
    this.line.failed(waiter, error);
    this.refuseTriers((trier) => this.line.unavailable(trier));
    if (!this.line.isEmpty && error.kind === 'unavailable' && this.whenToAsk.failed()) this.line.reportFailure();
    this.resume();
  }

  /**
   * Called when the request waits in the backend, for the lock or for something else. Refuses callers that must not
   * wait.
   */
  private blocked(reason: Busy | BackendError): void {
    const { line } = this;
    if (reason instanceof BackendError) {
      line.noteFailure(reason);
      const mayWait = ({ triesOnce, scoped }: LockWaiter) => !triesOnce && !scoped;
      return line.refuseWhere((waiter) => (mayWait(waiter) ? undefined : line.unavailable(waiter)));
    }
    line.foundBusy(reason, this.services.clock.now());
    this.waitsInBackend = true;
    this.refuseTriers((trier) => line.busy(trier));
    line.rest();
  }

  /** Whether processes wait for this lock in line. That may change, because a backend may lack the right to its line. */
  private get hasLine(): boolean {
    return hasLine(this.type) && this.services.backend.line !== undefined;
  }

  /** What decides after a request that did not take the lock. It is another one if the line is not in use any more. */
  private get whenToAsk(): WhenToAsk {
    const { key, type } = this;
    const { backend, runtime, clientId } = this.services;
    const line = hasLine(type) ? backend.line : undefined;
    const retry = () => this.resume();
    if (this.again !== undefined && this.listensInLine === (line !== undefined)) return this.again;
    if (this.again !== undefined) {
      this.again.close();
      this.place.leave();
    }
    this.listensInLine = line !== undefined;
    this.again = new WhenToAsk(
      (listener, heldAs) =>
        line !== undefined && heldAs === undefined
          ? this.listenInLine(line, listener)
          : backend.subscribe(key, heldAs ?? type, clientId, listener),
      runtime,
      retry,
      line === undefined ? SPREAD : 0,
    );
    return this.again;
  }

  // ── Owner ids, and the place in the line ───────────────────────────────────────────────────────────────

  /** @returns whether the waiter gets another owner id */
  private abandonOwner(waiter: LockWaiter, attempt: Attempt): boolean {
    const hasPlace = this.place.isOf(attempt.owner);
    if (!attempt.abandon(hasPlace)) return false;
    if (hasPlace) this.place.forget();
    waiter.renewOwner();
    return true;
  }

  /** Gives a waiter a new owner id before it asks again, if the backend has released its present id. */
  renewSpentOwner(waiter: LockWaiter): void {
    // While others of this process hold permits, only a request under the place may use its owner id.
    const { owner } = this.place;
    if (owner !== undefined && this.type === 'permits') waiter.dropPlace(owner);
    if (!waiter.ownerSpent) return;
    if (this.place.isOf(waiter.owner)) this.place.spend();
    waiter.renewOwner();
  }

  /**
   * Lets this process wait in line once it listens, so that no message is missed. A caller that tries once does not wait,
   * and readers that follow another one need no place.
   */
  private enterLine(waiter: LockWaiter): void {
    const { terms } = waiter;
    if (waiter.triesOnce || waiter.follows) return;
    // The order of newest callers is that in which they first ask. Who is granted the lock before it listens learns that
    // when it listens, because it then asks again.
    if (this.kind === 'newest' && this.hasLine && (this.again === undefined || this.listensInLine)) {
      this.place.begin(waiter);
      return;
    }
    if (this.hasLine ? !this.mayEnterLine(waiter) : terms.type !== 'write') {
      if (!this.hasLine) this.place.leave();
      return;
    }
    // Others ask beside the one that uses the place.
    if (this.attempts === 0) this.place.use(waiter);
  }

  /** Whether a caller enters the line with its next request, if no other request is under way. */
  private mayEnterLine({ triesOnce, follows }: LockWaiter): boolean {
    return this.listensInLine && this.again?.listens === true && this.hasLine && !triesOnce && !follows;
  }

  /** Called when nobody may wait any more although the process holds permits. The next caller asks without a pause. */
  private leaveEmptyLine(): void {
    if (this.waiting.length > 0) return;
    this.again?.onEmpty();
    if (this.attempts === 0) this.place.leave();
  }

  /**
   * After a waiter has left, and again when its request is answered: gives up a place that is none for the next waiter.
   */
  private checkPlace(): void {
    const { first } = this.waiting;
    const { place } = this;
    if (!place.exists || first === undefined || place.isFor(first) || place.isAsking) return;
    place.leave();
    this.again?.recheck();
  }

  /**
   * Handles a forced release by this process. The lock may have been granted to its place, by a message that is still to
   * come.
   */
  removed(owners: readonly string[]): void {
    const { owner } = this.place;
    if (owner === undefined || this.attempts > 0 || !owners.includes(owner)) return;
    this.place.forget();
    this.again?.recheck();
  }

  placeLost(): void {
    this.again?.recheck();
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
    this.line.noteFailure(error);
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

  // ── The lock while it is held here ─────────────────────────────────────────────────────────────────────────────────

  hold(held: HeldLock, now: Moment): void {
    this.line.failure = undefined;
    this.line.forgetHolder();
    if (this.place.isOf(held.owner)) this.place.end();
    else if (this.type !== 'permits' && held.type !== 'read') this.place.leave();
    this.tenure.hold(held, now);
  }

  depart(held: HeldLock): () => void {
    const { tenure } = this;
    tenure.drop(held);
    tenure.beginDeparture();
    return () => {
      tenure.endDeparture();
      this.rememberPlace(held);
      this.resume();
    };
  }

  forget(held: HeldLock): void {
    this.tenure.forget(held);
    this.resume();
  }

  lost(held: HeldLock): void {
    this.rememberPlace(held);
    this.forget(held);
    this.tenure.reportLoss(held);
  }

  giveBack(held: HeldLock, now?: Moment, listener?: ReleaseListener): GivenBack {
    const { tenure } = this;
    held.downgrade?.abandon();
    const forgotten = tenure.giveBackForgotten(held);
    if (forgotten !== undefined) return forgotten;
    const next = this.heir;
    const passed = next !== undefined && this.handOff.pass(held, next, now);
    if (passed !== false) {
      if (this.type === 'permits') this.leaveEmptyLine();
      return passed;
    }
    return tenure.giveBack(held, listener);
  }

  /** Who inherits the lock: the first waiter that does not ask itself (for a permit, say), or else the first one. */
  get heir(): LockWaiter | undefined {
    const { waiting } = this;
    if (waiting.first?.attempt === undefined) return waiting.first;
    for (const waiter of waiting) if (waiter.attempt === undefined) return waiter;
    return waiting.first;
  }

  /** The place of an owner is used up, which does not hold the lock any more. */
  private rememberPlace({ owner, wouldWait }: HeldLock): void {
    if (wouldWait && this.again?.listens) this.services.formerPlaces.add(owner);
  }

  released(held: HeldLock, reply: ReleaseReply | undefined): void {
    const { type } = held;
    this.rememberPlace(held);
    if (this.waiting.length === 0) this.handOffs?.notFollowed();
    if (type !== 'read' && reply !== undefined && reply.listeners > 0) this.letOthersGoFirst();
    this.resume();
  }

  /**
   * Lets those ask before this process who stand in no line and heard of its release: at every second one if there is a
   * line, also if nobody is in it.
   */
  private letOthersGoFirst(): void {
    if (!this.hasLine) {
      if (this.waiting.length > 0) this.whenToAsk.standBack();
      return;
    }
    this.leavesLock = !this.leavesLock;
    if (this.leavesLock) this.whenToAsk.standBack(HEAD_START);
  }

  /** @returns false if the lock leaves this process all the same */
  private recall(release: RecallableRelease, next: LockWaiter): boolean {
    if (this.waiting.length > 1 || this.claims > 0 || !this.handOff.recall(release, next)) return false;
    if (next.settled) return true;
    if (next.mayLeave) this.line.watch(next);
    this.line.rest();
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

  private get handOff(): HandOff {
    this.handOffs ??= new HandOff(this.services, this, this.tenure);
    return this.handOffs;
  }
}

function newestCall({ newest }: LockWaiter): NewestCall {
  return newest ?? FIRST_CALL;
}
