import type { BackendError, Busy } from '../../backends/lock-backend.js';
import { type Linked, LinkedQueue } from '../collections/linked-queue.js';
import type { LockBusyError, LockSupersededError, LockUnavailableError } from '../errors.js';
import type { HeldLock, LockWaiter } from '../hold/held-lock.js';
import type { Services } from '../services.js';
import type { Moment } from '../time/lease-clock.js';
import { ReschedulableTimer } from '../time/reschedulable-timer.js';
import type { Awaited, AwaitingQueue } from '../wait/awaited.js';
import type { Caller } from '../wait/caller.js';
import { SILENCE } from '../wait/outage-limit.js';
import type { RestingCallers } from '../wait/ping-while-waiting.js';
import {
  type InLine,
  type KnownHolder,
  permanentError,
  supersededError,
  unavailableError,
} from '../wait/wait-errors.js';
import { LongWaitWarning } from './long-wait-warning.js';

/**
 * So many milliseconds before a caller gives up, the record of the holder is read, whose client the error names. Most
 * callers are served before that.
 */
const READ_AHEAD = 600;

/** The least number of milliseconds between two searches for callers that give up soon, because each visits all callers. */
const SEARCH_PAUSE = 100;

/** The parts of a queue that its line needs. */
interface QueueOfCallers<Queued> {
  readonly key: string;
  readonly holders: readonly HeldLock[];
  /** Whether a request about the lock is unanswered. */
  readonly isAsking: boolean;
  /** When the first waiter's request was sent, on the monotonic clock, if it is unanswered and that is known. */
  readonly askedAt?: number | undefined;
  /** Whether a backend in which callers wait has not said yet that they wait for the lock. */
  readonly isUndecided?: boolean;
  /** Whether the request that is unanswered waits in the backend until another holder releases the lock. */
  readonly waitsInBackend?: boolean;
  /** What the callers wait for, if it is not a lock. */
  readonly awaited?: Awaited;
  /** Describes what the callers wait for, for the log, if it is not a lock with a known holder. */
  describeObstacle?(write: (obstacle: string) => void): Promise<void>;
  /** Whether a caller that tries only once is still waiting for its own answer. */
  awaitsAnswer?(trier: Queued): boolean;
  /** Called after waiters have left the line without being served, in the order of their arrival. */
  left(waiters: readonly Queued[]): void;
}

/**
 * The callers of one process that wait for one lock, for permits of one semaphore, or for one latch, in the order of
 * their arrival. Callers that are not served leave only here. They get the error that says why: others hold what they
 * want, or the backend does not answer.
 */
export class Callers<Queued extends Caller<never> & InLine & Linked<Queued> = LockWaiter>
  implements AwaitingQueue, RestingCallers
{
  readonly waiters = new LinkedQueue<Queued>();
  /** The last request's failure, until the backend answers again. */
  failure: BackendError | undefined = undefined;
  resting = false;

  /**
   * Whether callers that try once may be among the waiters. It saves a search through thousands of waiters when there
   * are none.
   */
  private hasTriers = false;
  /** The last answer that named another holder, and when it arrived. */
  private busyReply: Busy | undefined = undefined;
  private busyAt: Moment | undefined = undefined;
  private longWaits: LongWaitWarning<Queued> | undefined = undefined;
  /** The next search for callers that give up soon. */
  private lookup: ReschedulableTimer | undefined = undefined;
  /** When the last one began, on the monotonic clock. */
  private searchedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly services: Services,
    private readonly queue: QueueOfCallers<Queued>,
  ) {}

  get key(): string {
    return this.queue.key;
  }

  get keys(): readonly string[] {
    return [this.queue.key];
  }

  get isEmpty(): boolean {
    return this.waiters.length === 0;
  }

  /** Whether nobody waits for the lock, asks for it or holds it. */
  get isIdle(): boolean {
    const { isAsking, holders } = this.queue;
    return this.isEmpty && !isAsking && holders.length === 0;
  }

  // ── Callers come and leave ─────────────────────────────────────────────────────────────────────────────────────────

  add(waiter: Queued): void {
    this.waiters.push(waiter);
    if (waiter.triesOnce) this.hasTriers = true;
  }

  /** Ends the wait of a waiter after its waitTime or when its signal aborts. */
  watch(waiter: Queued): void {
    if (this.busyReply !== undefined) this.expectHolder(waiter);
    waiter.watch((reason) => {
      // When the caller's signal aborts, this error is discarded, so it must not emit a `busy` event.
      const error = reason === 'abort' ? this.unavailable(waiter) : this.refusal(waiter);
      this.leave([waiter]);
      return error;
    });
  }

  /** Removes a waiter that was not served, and refuses it. */
  dismiss(waiter: Queued, error: Error): void {
    this.leave([waiter]);
    waiter.refuse(error);
  }

  /** Refuses all waiters that get an error. They leave together, so that the queue asks for none of them meanwhile. */
  refuseWhere(errorOf: (waiter: Queued) => Error | undefined): void {
    const errors = new Map<Queued, Error>();
    for (const waiter of this.waiters) {
      const error = errorOf(waiter);
      if (error !== undefined) errors.set(waiter, error);
    }
    if (errors.size === 0) return;
    this.leave([...errors.keys()]);
    for (const [waiter, error] of errors) waiter.refuse(error);
  }

  /**
   * Refuses the callers that try once, as soon as one of them could only wait: others hold the lock, or the backend does
   * not answer. Those that have still to get an answer of their own are not refused because of another's. The queue is
   * not told that they leave.
   */
  refuseTriers(): void {
    if (!this.hasTriers) return;
    this.hasTriers = false;
    for (const trier of this.waiters) {
      if (!trier.triesOnce) continue;
      if (this.queue.awaitsAnswer?.(trier)) {
        this.hasTriers = true;
        continue;
      }
      this.remove(trier);
      trier.refuse(this.failure === undefined ? this.busy(trier) : this.unavailable(trier));
    }
  }

  /** Records that a request failed. */
  noteFailure(error: BackendError): void {
    this.failure = error;
    if (this.services.admission.isEnding) this.services.work.changed();
  }

  /** Records that a waiter's request failed, and refuses the waiter if another request would fail, too. */
  failed(waiter: Queued, error: BackendError): void {
    this.noteFailure(error);
    if (waiter.settled || error.kind === 'unavailable') return;
    this.dismiss(waiter, permanentError(waiter, this.services.backend, error));
  }

  /** Reports the last failure for the first waiter, which continues to wait. */
  reportFailure(): void {
    const { first } = this.waiters;
    if (first !== undefined) this.services.outages.attemptFailed(() => this.unavailable(first));
  }

  /**
   * Removes a waiter, served or not. A queue that serves several waiters in a row may remove all but the last directly
   * from `waiters`.
   *
   * @returns false if it has left already
   */
  remove(waiter: Queued): boolean {
    const wasWaiting = this.waiters.remove(waiter);
    if (this.isEmpty) this.close();
    return wasWaiting;
  }

  private leave(waiters: readonly Queued[]): void {
    this.queue.left(waiters.filter((waiter) => this.remove(waiter)));
  }

  // ── What they wait for ─────────────────────────────────────────────────────────────────────────────────────────────

  get awaited(): Awaited {
    const { queue, services } = this;
    if (queue.awaited !== undefined) return queue.awaited;
    if (this.failure !== undefined) return 'the end of an outage';
    if (queue.isAsking && !queue.waitsInBackend) return 'an answer';
    if (services.heldLocks(queue.key).length > 0) return 'this process';
    return this.busyReply === undefined ? 'an answer' : 'another process';
  }

  /** Called when the callers wait until the lock's state changes. */
  rest(): void {
    if (this.services.admission.isEnding) this.services.work.changed();
    if (this.services.unlimitedWaits.isDue) this.checkLimit();
    this.longWaits ??= new LongWaitWarning(this.services, this.waiters, (write) => this.describeObstacle(write));
    this.longWaits.watch();
    this.services.pings.rest(this);
  }

  /**
   * Warns of a caller that waits without a limit. Before the lock is known to be held, here or by an answer that names
   * another holder, a caller may be served at once.
   */
  checkLimit(): void {
    const { first } = this.waiters;
    const isBusy = this.busyReply !== undefined || this.queue.holders.length > 0;
    if (isBusy && first !== undefined) this.services.unlimitedWaits.check(first);
  }

  /** Called when nobody waits any more. */
  close(): void {
    this.longWaits?.close();
    this.lookup?.cancel();
    if (this.resting) this.services.pings.unrest(this);
  }

  /**
   * Records the backend's answer that others hold the lock.
   *
   * @param asker the caller that had asked; left out: any of them
   */
  foundBusy(reply: Busy, at: Moment, asker?: Queued): void {
    const isNews = this.busyReply?.holder === undefined;
    this.failure = undefined;
    this.busyReply = reply;
    this.busyAt = at;
    if (this.services.admission.isEnding) this.services.work.changed();
    if (this.services.unlimitedWaits.isDue) this.checkLimit();
    // Later callers are handled when they arrive and when they ask.
    if (isNews || asker === undefined) this.searchAfter(0);
    else this.expectHolder(asker);
  }

  /** Looks for callers that give up soon: after `delay` milliseconds, or a little later if that was done just before. */
  private searchAfter(delay: number): void {
    const pause = this.searchedAt + SEARCH_PAUSE - this.services.runtime.monotonic();
    const left = Math.max(delay, pause);
    if (left <= 0) return this.expectHolderForAll();
    this.lookup ??= new ReschedulableTimer(this.services.runtime, () => this.expectHolderForAll());
    if (this.lookup.isScheduled) this.lookup.bringForward(left);
    else this.lookup.schedule(left);
  }

  private expectHolderForAll(): void {
    this.searchedAt = this.services.runtime.monotonic();
    for (const waiter of this.waiters) this.expectHolder(waiter);
  }

  /** Makes sure that the record of the holder is read before this caller gives up. */
  private expectHolder(waiter: Queued): void {
    const holder = this.busyReply?.holder;
    const left = waiter.remainingWait;
    if (holder === undefined || waiter.settled || waiter.triesOnce || left === Number.POSITIVE_INFINITY) return;
    // A timer may fire a moment early.
    if (left < READ_AHEAD + 1) return this.services.holders.expect(holder);
    this.searchAfter(left - READ_AHEAD);
  }

  /** The lock is held here now, so the known holder is out of date. */
  forgetHolder(): void {
    this.busyReply = this.busyAt = undefined;
  }

  /** The error for a waiter that was not served in time. */
  refusal(waiter: Queued): Error {
    return this.isUnavailableTo(waiter) ? this.unavailable(waiter) : this.busy(waiter);
  }

  /** Whether a caller was not served because of an outage, and not because of a busy lock. */
  isUnavailableTo(caller: Caller<never>): boolean {
    const { isAsking, askedAt } = this.queue;
    if (this.failure !== undefined || this.services.outages.isSilent(caller, this.keys, isAsking, askedAt)) return true;
    return this.queue.isUndecided === true && this.busyReply === undefined && caller.terms.waitTime >= SILENCE;
  }

  busy(waiter: Queued): LockBusyError {
    const error = waiter.busyError(this.knownHolder);
    waiter.announceBusy?.(error, this.services.events);
    return error;
  }

  /** The error for a waiter whose place was taken by a later caller. */
  superseded(waiter: Queued): LockSupersededError {
    const { holder, remaining, client } = this.knownHolder;
    const error = supersededError(waiter.name, remaining, holder, client);
    waiter.announceBusy?.(error, this.services.events);
    return error;
  }

  unavailable(waiter: Queued): LockUnavailableError {
    const { backend, outages } = this.services;
    return unavailableError(waiter, backend, this.failure ?? outages.failure(this.keys));
  }

  private async describeObstacle(write: (obstacle: string) => void): Promise<void> {
    if (this.queue.describeObstacle !== undefined) return this.queue.describeObstacle(write);
    const { holder, client } = this.knownHolder;
    await this.services.holders.describe(holder, client, (who) => write(`held by ${who}`));
  }

  /** The known holder of the lock: from this process, or from the backend's last answer. */
  private get knownHolder(): KnownHolder {
    const { clock, holders } = this.services;
    const held = this.nextToEnd;
    if (held !== undefined) {
      const remaining = timeLeft(held.validFor, clock.age(held.confirmed));
      return { holder: held.owner, here: true, remaining, fixed: held.fixed, client: holders.own(held) };
    }
    const { busyReply, busyAt } = this;
    const isLimited = busyReply !== undefined && busyAt !== undefined && busyReply.remaining >= 0;
    const remaining = isLimited ? timeLeft(busyReply.remaining, clock.age(busyAt)) : -1;
    const holder = busyReply?.holder;
    return { holder, here: false, remaining, client: holders.known(holder), unrecorded: holders.unrecorded(holder) };
  }

  /** The holder of this process that a caller waits for. Any of several that hold permits may make room. */
  private get nextToEnd(): HeldLock | undefined {
    const { holders } = this.queue;
    if (holders.length < 2 || holders[0].type !== 'permits') return holders[0];
    return holders.reduce((one, other) => (other.leaseEnd < one.leaseEnd ? other : one));
  }
}

function timeLeft(time: number, age: number): number {
  return Math.max(0, Math.round(time - age));
}
