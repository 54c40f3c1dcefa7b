import { HEAD_START, type LineBackend } from '../../backends/line-backend.js';
import type { Busy, Grant, HeldType, Subscription, Wake } from '../../backends/lock-backend.js';
import type { LinkedQueue } from '../collections/linked-queue.js';
import type { HeldLock, LockWaiter } from '../hold/held-lock.js';
import type { Services } from '../services.js';
import type { Moment } from '../time/lease-clock.js';
import { WhenToAsk } from '../wait/when-to-ask.js';
import { PlaceInLine } from './place-in-line.js';
import { unregister } from './waiter-registration.js';

/** Within how many milliseconds of a release those ask who wait for a lock without a line. */
const SPREAD = 10;

type Message = Wake & { readonly kind: 'message' };

/** The queue whose turn it is. */
interface QueueOfTurn {
  readonly key: string;
  readonly type: HeldType;
  readonly waiting: LinkedQueue<LockWaiter>;
  /** The number of unanswered acquisitions. */
  readonly attempts: number;
  /** Whether a message may grant the lock to this waiter now. */
  mayBeGranted(waiter: LockWaiter): boolean;
  /** Serves a waiter whom a message has granted the lock, with a lease that began at `begun`. */
  takeGrant(waiter: LockWaiter, owner: string, grant: Grant, begun: Moment, now: Moment): void;
  /** Asks if somebody may. */
  resume(): void;
  endIfIdle(): void;
}

/**
 * When one process may ask for a lock again that others hold, and its place in the line of that lock. Where the backend
 * has no line for it, every release wakes all processes.
 */
export class Turn {
  // Created when first needed: most locks are held by one caller without contention.
  private again: WhenToAsk | undefined = undefined;
  private ownPlace: PlaceInLine | undefined = undefined;
  /** Whether this process listens for its place in the line, or for all releases. */
  private listensInLine = false;
  /** Whether the latest release of which others heard left the lock to them. */
  private leavesLock = false;

  constructor(
    private readonly services: Services,
    private readonly queue: QueueOfTurn,
  ) {}

  // ── When to ask ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Whether nobody may ask now: a message or a timer lets the queue resume. */
  get resting(): boolean {
    return this.again?.resting === true;
  }

  /** Records that a request is sent. @returns what to pass to {@link busy} */
  begin(): number {
    return this.again?.begin() ?? 0;
  }

  acquired(): void {
    this.again?.acquired();
  }

  /** Rests after a request that found the lock busy. */
  busy({ remaining, heldAs, holder }: Busy, changesBefore: number): void {
    const again = this.whenToAsk();
    again.busy(remaining, heldAs, changesBefore);
    if (this.hasPlace) this.place.keep();
    // Without a place, nobody is told of a release. It was given up, or the caller that asked tries only once.
    const isUntold = !this.hasPlace && again.listens && this.hasLine();
    // Another caller asked, and this process has perhaps heard before the request that the place was granted the lock.
    if (isUntold || this.isPlace(holder)) again.recheck();
  }

  /** Pauses after a request without an answer. @returns whether it is the first failure in a row */
  failed(): boolean {
    return this.whenToAsk().failed();
  }

  /** Asks again after a change that no message announces. */
  recheck(): void {
    this.again?.recheck();
  }

  /** The next caller asks without a pause. */
  stopResting(): void {
    this.again?.onEmpty();
  }

  /** Called when nobody waits any more. */
  emptied(): void {
    this.stopResting();
    if (this.queue.attempts === 0) this.ownPlace?.leave();
  }

  /**
   * Lets those ask before this process who stand in no line and heard of its release: at every second one if there is a
   * line, also if nobody is in it.
   */
  leaveToOthers(): void {
    if (!this.hasLine()) {
      if (this.queue.waiting.length > 0) this.whenToAsk().standBack();
      return;
    }
    this.leavesLock = !this.leavesLock;
    if (this.leavesLock) this.whenToAsk().standBack(HEAD_START);
  }

  /** Whether it is kept for the next caller although nobody waits. The queue ends later by itself. */
  outlivesCallers(): boolean {
    const { again } = this;
    if (again === undefined || this.services.admission.isDraining) return false;
    if (again.standsBack) return true;
    if (again.usefulFor <= 0) return false;
    again.whenUseless(() => this.queue.endIfIdle());
    return true;
  }

  close(): void {
    this.again?.close();
    this.ownPlace?.close();
  }

  /** What decides after a request that did not take the lock. It is another one if the line is not in use any more. */
  private whenToAsk(): WhenToAsk {
    const { key, type } = this.queue;
    const { backend, runtime, clientId } = this.services;
    const { line } = backend;
    if (this.again !== undefined) {
      if (this.listensInLine === (line !== undefined)) return this.again;
      this.again.close();
      this.ownPlace?.leave();
    }
    this.listensInLine = line !== undefined;
    this.again = new WhenToAsk(
      (listener, heldAs) =>
        line !== undefined && heldAs === undefined
          ? this.listenInLine(line, listener)
          : backend.subscribe(key, heldAs ?? type, clientId, listener),
      runtime,
      () => this.queue.resume(),
      line === undefined ? SPREAD : 0,
    );
    return this.again;
  }

  // ── The place in the line ──────────────────────────────────────────────────────────────────────────────────────────

  /** Whether processes wait for this lock in line. That may change, because a backend may lack the right to its line. */
  hasLine(): boolean {
    return this.services.backend.line !== undefined;
  }

  /** Whether this process listens for all releases, and not for its place. */
  get listensOutside(): boolean {
    return this.again !== undefined && !this.listensInLine;
  }

  get place(): PlaceInLine {
    this.ownPlace ??= new PlaceInLine(this.services, this.queue, () => this.recheck());
    return this.ownPlace;
  }

  get hasPlace(): boolean {
    return this.ownPlace?.exists === true;
  }

  get placeOwner(): string | undefined {
    return this.ownPlace?.owner;
  }

  isPlace(owner: string | undefined): boolean {
    return this.ownPlace?.isOf(owner) === true;
  }

  /** Lets this process wait in line once it listens, so that no message is missed. */
  enterLine(waiter: LockWaiter, isAlone: boolean): void {
    if (!this.hasLine()) this.ownPlace?.leave();
    // Others ask beside the one that uses the place.
    else if (isAlone && this.mayEnterLine(waiter)) this.place.use(waiter);
  }

  /** Whether a caller enters the line with its next request, if no other request is under way. */
  mayEnterLine({ triesOnce }: LockWaiter): boolean {
    return this.listensInLine && this.again?.listens === true && this.hasLine() && !triesOnce;
  }

  /** The place under which this process asks has ended in the backend. */
  endPlace(owner: string): void {
    if (this.isPlace(owner)) this.place.end();
  }

  /** Gives up the place unless it is kept for those who wait. @param held what this process has got */
  got(held: HeldLock, keepsPlace: boolean): void {
    if (this.isPlace(held.owner)) this.place.end();
    else if (!keepsPlace) this.ownPlace?.leave();
  }

  /**
   * After a waiter has left, and again when its request is answered: gives up a place that is none for the next waiter.
   */
  checkPlace(): void {
    const { first } = this.queue.waiting;
    const place = this.ownPlace;
    if (place === undefined || !place.exists || first === undefined || place.isFor(first) || place.isAsking) return;
    place.leave();
    this.recheck();
  }

  /** Called when a request was answered. */
  leaveSpentPlaces(): void {
    this.ownPlace?.leaveSpent();
  }

  /**
   * Handles a forced release by this process. The lock may have been granted to its place, by a message that is still to
   * come.
   */
  removed(owners: readonly string[]): void {
    const { placeOwner } = this;
    if (placeOwner === undefined || this.queue.attempts > 0 || !owners.includes(placeOwner)) return;
    this.place.forget();
    this.recheck();
  }

  /** The place of an owner is used up, which does not hold the lock any more. */
  remember({ owner, wouldWait }: HeldLock): void {
    if (wouldWait && this.again?.listens) this.services.formerPlaces.add(owner);
  }

  /** Removes an owner of this process from the line. */
  unregister(owner: string): void {
    const { key, type } = this.queue;
    unregister(this.services, { key, type, owner });
  }

  // ── Messages ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Listens for what concerns the place of this process in the line. */
  private listenInLine(line: LineBackend, listener: (wake: Wake) => void): Subscription {
    return line.listen(this.queue.key, this.services.clientId, (wake) => {
      if (wake.kind !== 'message') return listener(wake);
      if (this.isForNobody(wake.owner)) this.unregister(wake.owner);
      if (!this.takeGrant(line, wake) && !this.isForOthers(wake)) listener(wake);
    });
  }

  /**
   * Takes the lock if a message certainly grants it to the place of this process, with the lease that the first waiter
   * wants.
   *
   * @returns false if the backend has to be asked
   */
  private takeGrant(line: LineBackend, { owner, grant }: Message): boolean {
    const { queue } = this;
    const { first } = queue.waiting;
    if (owner === undefined || grant === undefined || first === undefined) return false;
    if (!this.isPlace(owner) || !queue.mayBeGranted(first)) return false;
    const now = this.services.clock.now();
    const begun = this.place.beginOf(grant, first, now);
    if (begun === undefined) return false;
    line.begun(grant);
    // Perhaps another waiter has asked, before the first one was first.
    first.dropPlace(owner);
    this.place.dropAsker();
    queue.takeGrant(first, owner, grant, begun, now);
    return true;
  }

  /**
   * Whether a message is for a place of another queue of this process: all its queues for one name hear each of them. If
   * each asked, one request could wake the next without end, because a request may tell the first place of the line.
   */
  private isForOthers({ owner }: Message): boolean {
    return owner !== undefined && this.hasPlace && !this.isPlace(owner);
  }

  /** Whether a message is for a place that this process has left or used up, which a failover may have brought back. */
  private isForNobody(owner: string | undefined): owner is string {
    return owner !== undefined && this.services.formerPlaces.has(owner);
  }
}
