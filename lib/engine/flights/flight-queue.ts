import type { FlightBackend, FlightBusy, FlightReply, HeldType } from '../../backends/lock-backend.js';
import { mayShareResult } from '../../backends/may-share-result.js';
import { type Asker, Attempt, type Failed, type Granted, type Outcome } from '../ask/attempt.js';
import type { LinkedQueue } from '../collections/linked-queue.js';
import {
  HeldLock,
  type LockKeeper,
  type ReleaseListener,
  type ReleaseOutcome,
  tellOutcome,
  UNAWAITED,
} from '../hold/held-lock.js';
import { Tenure } from '../hold/tenure.js';
import { Callers } from '../queue/callers.js';
import type { Services } from '../services.js';
import { type Moment } from '../time/lease-clock.js';
import { Waiter } from '../wait/waiter.js';
import { WhenToAsk } from '../wait/when-to-ask.js';
import type { FlightTerms } from './flight-terms.js';
import { type Run, storeResult } from './store-result.js';

/** The result of another caller's run, as text. */
export interface SharedResult {
  readonly value: string;
  /** The owner of the run. */
  readonly run: string;
}

/** A caller of a single flight. It gets either the lock, in order to run the body, or the result of another run. */
export class FlightWaiter extends Waiter<HeldLock | SharedResult> {
  declare readonly terms: FlightTerms;

  /**
   * The reading of the token clock in the caller's first busy answer. The caller may get the result of a run that ended
   * after it.
   */
  begin: number | undefined;
  /** Whether a request was sent after the caller had arrived. Its answer then also applies to this caller. */
  asked = false;
  /**
   * Whether the caller joins the run of this process. It is `unknown` until the backend has confirmed, after this
   * caller's arrival, that the run holds its lock and that results were not forgotten since it began.
   */
  joins: 'yes' | 'no' | 'unknown' = 'no';

  override get what(): string {
    return `the single flight '${this.name}'`;
  }
}

const NOBODY: readonly FlightWaiter[] = [];

/**
 * One single flight in one process: its waiting callers, and the run of this process, if there is one.
 *
 * 1. `running`: a run of this process holds the lock. Callers join it. Once for all callers of a tick, the backend is
 *    asked whether the run still holds the lock, and results were not forgotten since it began. Otherwise these callers
 *    do not join, and wait for the next run.
 * 2. `departing`: the run has ended, and its release is unanswered. Nobody asks.
 * 3. `asking`: a request of one caller is under way. The answer is a result, the lock, or `busy`. The clock reading of
 *    a busy answer becomes the `begin` of all callers that had arrived when the request was sent.
 * 4. `resting`: somebody else holds the lock. A release wakes this process, which then asks for its first caller. All
 *    callers to which the result applies get it, and the others ask again. A caller that arrives asks at once, because
 *    it needs its `begin`.
 *
 * The lock is never handed off, because a result wakes all callers at once. A run that loses its lock is no longer the
 * run of this process, and callers that had joined it ask again.
 */
export class FlightQueue implements LockKeeper, Asker<FlightWaiter, FlightReply> {
  readonly kind = 'flight';
  readonly callers: Callers<FlightWaiter>;
  private readonly tenure: Tenure;
  private readonly turn: WhenToAsk;
  private run: Run | undefined;
  private asking: FlightWaiter | undefined;
  /** The callers that had arrived when the request under way was sent. */
  private present: readonly FlightWaiter[] = NOBODY;
  /** Whether the backend is being asked if callers may join. */
  private verifying = false;

  /** @param onIdle called when the queue has nothing left to do */
  constructor(
    private readonly services: Services,
    readonly name: string,
    readonly key: string,
    private readonly onIdle: (queue: FlightQueue) => void,
  ) {
    const { backend, runtime, clientId } = services;
    this.callers = new Callers(services, this);
    this.tenure = new Tenure(services, this);
    this.turn = new WhenToAsk(
      (listener, heldAs: HeldType = 'flight') => backend.subscribe(key, heldAs, clientId, listener),
      runtime,
      () => this.resume(),
    );
  }

  get waiting(): LinkedQueue<FlightWaiter> {
    return this.callers.waiters;
  }

  get holders(): readonly HeldLock[] {
    return this.tenure.holders;
  }

  get isAsking(): boolean {
    return this.asking !== undefined || this.tenure.isDeparting || this.verifying;
  }

  // ── Callers come and go ────────────────────────────────────────────────────────────────────────────────────────────

  /** Adds a caller, which is served or refused later. */
  enqueue(waiter: FlightWaiter): void {
    const { run } = this;
    if (run !== undefined && waiter.triesOnce) return waiter.refuse(this.callers.busy(waiter));
    if (run !== undefined && run.outcome === undefined) waiter.joins = 'unknown';
    this.callers.add(waiter);
    if (waiter.mayLeave) this.callers.watch(waiter);
    this.callers.rest();
    this.serveNext();
  }

  /** While others wait, nobody asks because some have left: a request and a run go on without them. */
  left(): void {
    if (!this.callers.isEmpty) return;
    this.turn.onEmpty();
    this.services.runtime.detached(() => this.resume());
  }

  private find(isWanted: (waiter: FlightWaiter) => boolean): FlightWaiter | undefined {
    for (const waiter of this.waiting) if (isWanted(waiter)) return waiter;
    return undefined;
  }

  awaitsAnswer({ asked }: FlightWaiter): boolean {
    return this.run === undefined && !asked;
  }

  /** Has no effect on a caller that has left. */
  private serve(waiter: FlightWaiter, granted: HeldLock | SharedResult): void {
    this.callers.remove(waiter);
    waiter.grant(granted);
  }

  // ── Serving callers ────────────────────────────────────────────────────────────────────────────────────────────────

  private serveNext(): void {
    if (this.run !== undefined) return this.verifyJoins();
    if (this.isAsking) return;
    const isNew = (waiter: FlightWaiter) => waiter.begin === undefined && (!this.isFailing || waiter.triesOnce);
    const next = this.turn.resting ? this.find(isNew) : this.waiting.first;
    if (next !== undefined) this.ask(next);
  }

  private resume(): void {
    this.serveNext();
    this.endIfIdle();
  }

  endIfIdle(): void {
    if (!this.callers.isIdle) return;
    this.turn.close();
    this.onIdle(this);
  }

  private get isFailing(): boolean {
    return this.callers.failure !== undefined;
  }

  private get flights(): FlightBackend {
    return this.services.backend.flights as FlightBackend; // callers were refused if the backend has none
  }

  // ── Asking the backend ─────────────────────────────────────────────────────────────────────────────────────────────

  private ask(waiter: FlightWaiter): void {
    const { services, key } = this;
    if (waiter.ownerSpent) waiter.renewOwner();
    const { owner, terms, begin } = waiter;
    const { leaseTime, keepFor, maxSize } = terms;
    this.turn.begin();
    this.asking = waiter;
    this.present = [...this.waiting];
    for (const caller of this.present) caller.asked = true;
    const attempt = new Attempt(services, key, owner, terms);
    attempt.send(this.flights.acquire({ key, owner, leaseTime, begin, keepFor, maxSize }), this, waiter);
  }

  /** Called when the request of a caller has ended. Nobody asks while callers are refused because of it. */
  settled(outcome: Outcome<FlightReply>, waiter: FlightWaiter): void {
    const { present } = this;
    this.present = NOBODY;
    this.callers.failure = undefined;
    if (outcome.state === 'granted') this.granted(waiter, outcome);
    else if (outcome.state === 'failed') this.unanswered(waiter, outcome);
    else {
      if (outcome.abandon()) waiter.renewOwner();
      else if (outcome.ownerSpent) waiter.ownerSpent = true;
      if (outcome.state === 'busy') {
        const { reply, answeredAt } = outcome;
        if (reply.result !== undefined) this.share(waiter, reply, present);
        else this.foundBusy(waiter, reply, present, answeredAt);
      }
    }
    this.asking = undefined;
    this.resume();
  }

  private granted(waiter: FlightWaiter, outcome: Granted): void {
    const { terms } = waiter;
    const { reply, answeredAt } = outcome;
    this.turn.acquired();
    this.callers.forgetHolder();
    const held = new HeldLock(this, outcome, terms.fixed, reply, Math.floor(answeredAt.monotonic));
    this.run = { held, terms, outcome: undefined };
    this.tenure.hold(held, answeredAt);
    if (waiter.settled) {
      this.services.events.unawaited(this.giveBack(held, UNAWAITED));
      return;
    }
    this.serve(waiter, held);
    for (const caller of this.waiting) if (!caller.triesOnce) caller.joins = caller.asked ? 'yes' : 'unknown';
    this.callers.refuseTriers();
  }

  /** Gives a result to all callers that may get it. */
  private share(waiter: FlightWaiter, reply: FlightBusy, present: readonly FlightWaiter[]): void {
    const { result, age = -1 } = reply;
    if (result === undefined) return;
    const { value, run } = result;
    const size = Buffer.byteLength(value);
    this.turn.acquired();
    this.serve(waiter, { value, run });
    for (const caller of present)
      if (mayShareResult(result, size, age, caller.begin, caller.terms)) this.serve(caller, { value, run });
  }

  private foundBusy(waiter: FlightWaiter, reply: FlightBusy, present: readonly FlightWaiter[], now: Moment): void {
    this.callers.foundBusy(reply, now, waiter);
    for (const caller of present) caller.begin ??= reply.reading;
    this.callers.refuseTriers();
    if (this.waiting.length === 0) return;
    this.turn.busy(reply.remaining, reply.heldAs);
  }

  private unanswered(waiter: FlightWaiter, outcome: Failed): void {
    const { error } = outcome;
    if (outcome.abandon()) waiter.renewOwner();
    this.callers.failed(waiter, error);
    this.callers.refuseTriers();
    if (!this.callers.isEmpty && error.kind === 'unavailable' && this.turn.failed()) this.callers.reportFailure();
  }

  // ── The run of this process ────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Asks the backend, for all callers that have arrived since the last time, whether the run still holds its lock, and
   * whether results were forgotten. Without the lock, the backend may not know that they were.
   */
  private verifyJoins(): void {
    const { run, verifying } = this;
    const isNew = ({ joins }: FlightWaiter) => joins === 'unknown';
    if (run === undefined || verifying || this.find(isNew) === undefined) return;
    const callers = [...this.waiting].filter(isNew);
    this.verifying = true;
    const answered = (mayJoin: boolean) => {
      this.verifying = false;
      for (const caller of callers) if (caller.joins === 'unknown') caller.joins = mayJoin ? 'yes' : 'no';
      this.resume();
    };
    const { owner, token } = run.held;
    this.flights.mayJoin({ key: this.key, owner, token }).then(answered, () => answered(false));
  }

  /** Called when the body has returned or thrown. From now on, nobody joins the run. */
  bodyEnded(held: HeldLock, outcome: NonNullable<Run['outcome']>): void {
    if (this.run?.held === held) this.run.outcome = outcome;
  }

  giveBack(held: HeldLock, listener: ReleaseListener): Promise<void> | undefined {
    const { tenure } = this;
    const forgotten = tenure.giveBackForgotten(held);
    if (forgotten !== undefined) return tellOutcome(listener, forgotten);
    const run = this.run as Run; // it is set until the queue has forgotten the lock
    this.services.watchdog.drop(held);
    tenure.beginDeparture();
    const outcome = storeResult(this.services, this.flights, run).then((outcome) => {
      tenure.drop(held); // not earlier: until the answer, callers are refused because of this run
      this.run = undefined;
      this.shareOwn(run, outcome);
      tenure.endDeparture(); // not earlier: nobody asks until all callers have the outcome
      this.resume();
      return outcome;
    });
    return tellOutcome(listener, outcome);
  }

  /** Gives the outcome of the run of this process to the callers that joined it. */
  private shareOwn({ held, outcome }: Run, released: ReleaseOutcome): void {
    const isLost = released === 'gone' || outcome === undefined;
    for (const caller of this.waiting) {
      const { joins } = caller;
      caller.joins = 'no';
      if (joins !== 'yes' || isLost) continue;
      if ('value' in outcome) this.serve(caller, { value: outcome.value, run: held.owner });
      else this.callers.dismiss(caller, outcome.error as Error);
    }
  }

  forget(held: HeldLock): void {
    this.tenure.forget(held);
    if (this.run?.held === held) {
      this.run = undefined;
      for (const caller of this.waiting) caller.joins = 'no';
    }
    this.resume();
  }

  lost(held: HeldLock): void {
    this.forget(held);
    this.tenure.reportLoss(held);
  }

  /** Not called, because this queue awaits its releases. */
  released(): void {}
}
