import type { BackendError } from '../../backends/backend-error.js';
import type { Runtime, Timer } from '../../backends/runtime.js';
import type { Subscription, Wake } from '../../backends/subscription.js';
import type { RequestId } from '../../backends/synchronizer-backend.js';
import { LockAbortedError, LockBusyError } from '../errors.js';
import { Callers } from '../queue/callers.js';
import type { Services } from '../services.js';
import type { WaitTerms } from '../terms/wait-terms.js';
import type { Awaited } from '../wait/awaited.js';
import { Caller } from '../wait/caller.js';
import { type InLine, permanentError } from '../wait/wait-errors.js';
import { WhenToAsk } from '../wait/when-to-ask.js';
import { describeObstacle } from './describe-obstacle.js';
import { noUsableAnswer, type Synchronizer } from './synchronizer.js';

/**
 * The pause in milliseconds before a request is repeated although all its waiters have left. It is repeated because its
 * result has to be known.
 */
const SETTLEMENT_PAUSE = 1_000;

/** A caller that wants permits, or waits for a latch to open (and takes no permits). */
export class PermitWaiter<Granted, Terms extends WaitTerms = WaitTerms> extends Caller<Granted> implements InLine {
  declare readonly terms: Terms;

  /** The links of the queue that contains this waiter. */
  previous: this | undefined;
  next: this | undefined;

  readonly what: string;
  /** See {@link Synchronizer.initial}. */
  readonly initial: number | undefined;

  constructor(
    { name, what, initial }: Synchronizer,
    readonly permits: number,
    terms: Terms,
    runtime: Runtime,
    granted: (granted: Granted) => void,
    refused: (error: Error) => void,
  ) {
    super(name, terms, runtime, granted, refused);
    this.what = what;
    this.initial = initial;
  }

  get notServed(): string {
    return noUsableAnswer(this.what);
  }

  busyError(): LockBusyError {
    const { name, what, permits, terms } = this;
    const within = terms.waitTime > 0 ? ` within ${terms.waitTime} ms` : '';
    const wanted = permits === 1 ? `A permit of ${what} was` : `${permits} permits of ${what} were`;
    return new LockBusyError(`${wanted} not available${within}`, name, -1, undefined);
  }
}

/** Requests permits, or the state of a latch, for the waiters of a queue. */
export interface PermitSource<Waiter> {
  /** The waiters, from the first on, that one request can serve. */
  selectBatch(waiters: Iterable<Waiter>): readonly Waiter[];
  /** @param initial creates a missing semaphore with this many permits */
  request(waiters: readonly Waiter[], id: RequestId, initial: number | undefined): PermitRequest;
  /** Calls back when another request is useful. */
  subscribe(listener: (wake: Wake) => void): Subscription;
}

/** One request to the backend for several waiters. Sending it again gives the same result. */
export interface PermitRequest {
  /** Whether a grant takes permits. If so, the result has to be known even when all waiters have left. */
  readonly takesPermits: boolean;
  /**
   * @param repeated whether the request was sent before without an answer, so that the earlier copy may still be under
   * way
   * @throws BackendError
   */
  send(repeated: boolean): Promise<GrantResult>;
  /** Grants a served waiter what it asked for. */
  grant(index: number): void;
  /** Returns the permits of waiters that had left before they were served. */
  giveBack(indexes: readonly number[]): void;
}

export interface GrantResult {
  /** How many of the request's waiters, counted from the first, were served. */
  readonly served: number;
  /** Milliseconds after which another request makes sense even without a message; −1 if only a message can help. */
  readonly remaining: number;
  /** The semaphore does not exist. */
  readonly missing?: boolean;
  /** Set when permits were granted too late, after their leases had ended. They are given back. */
  readonly late?: BackendError;
}

/** A request and its waiters. */
interface Batch<Waiter> {
  readonly waiters: readonly Waiter[];
  readonly request: PermitRequest;
  /** The number of permits with which the request creates a missing semaphore. */
  readonly initial: number | undefined;
  /** Whether it is for callers that try only once. */
  readonly triesOnce: boolean;
  /**
   * Whether the request may have been executed. It is then repeated until its result is known, even if all waiters have
   * left.
   */
  unsettled: boolean;
}

/**
 * The callers of one process that want permits of one semaphore, or wait for one latch, in order of arrival. However
 * many callers wait, only one request is sent at a time, for the first of them.
 *
 * | state         | meaning                                        | ends                                                  |
 * | ------------- | ---------------------------------------------- | ----------------------------------------------------- |
 * | `idle`        | nobody asks; the first waiter may              | at once: → `asking`, or the queue is discarded        |
 * | `asking`      | a request is under way                         | → `idle` if it served all its waiters, or `resting`;  |
 * |               |                                                | after a failure, → `backing off` or `settling`        |
 * | `resting`     | too few permits for the first waiter           | → `idle` after a message, when the earliest lease     |
 * |               |                                                | ends, when this waiter leaves, or when a caller       |
 * |               |                                                | arrives that can create the semaphore                 |
 * | `backing off` | the last request failed                        | → `idle` after a pause, each longer than the previous |
 * | `settling`    | the same, and all waiters have left, although  | → `idle` after a second, or when a caller arrives     |
 * |               | the request may have taken permits             |                                                       |
 * | `closed`      | all callers were refused                       | never                                                 |
 *
 * A request that may have been executed is repeated unchanged until its result is known, so that it takes no permits
 * twice. Permits that nobody waits for any more are given back.
 *
 * Callers that try once (`waitTime: 0`) do not wait. Requests for them are also sent while the others rest or back off;
 * otherwise they take turns with the others.
 */
export class PermitQueue<Waiter extends PermitWaiter<never>> {
  readonly callers: Callers<Waiter>;
  /** Who holds the permits is not known here. */
  readonly holders: readonly never[] = [];
  /** How many of the callers in the line try once. */
  private triers = 0;
  /** The waiter for whom there were too few permits, according to the latest answer to a caller that waits. */
  private blocked: Waiter | undefined;
  private readonly turn: WhenToAsk;
  /** The request that is under way or has to be repeated. */
  private batch: Batch<Waiter> | undefined;
  /** Settles when the request under way settles. */
  private underWay: Promise<void> | undefined;
  private settlementTimer: Timer | undefined;
  /** Whether the last request was for callers that try once. */
  private triedLast = false;
  /** The number of permits with which one of the callers wants to create a missing semaphore. */
  private initial: number | undefined;
  private closed = false;

  constructor(
    private readonly services: Services,
    readonly key: string,
    private readonly source: PermitSource<Waiter>,
    private readonly nextRequest: () => RequestId,
    private readonly isHeldHere: () => boolean,
    private readonly retire: () => void,
  ) {
    this.callers = new Callers(services, this);
    const subscribe = (listener: (wake: Wake) => void) => source.subscribe(listener);
    this.turn = new WhenToAsk(subscribe, services.runtime, () => this.advance());
  }

  /** The number of waiting callers, without those that try once. */
  get length(): number {
    return this.callers.waiters.length - this.triers;
  }

  get awaited(): Awaited {
    if (this.callers.failure !== undefined) return 'the end of an outage';
    if (this.state !== 'resting') return 'an answer';
    return this.isHeldHere() ? 'this process' : 'another process';
  }

  get isAsking(): boolean {
    return this.underWay !== undefined;
  }

  describeObstacle(write: (obstacle: string) => void): Promise<void> {
    return describeObstacle(this.services, this.key, write);
  }

  enqueue(waiter: Waiter): void {
    this.callers.add(waiter);
    if (waiter.triesOnce) this.triers++;
    this.callers.watch(waiter);
    if (this.initial === undefined && waiter.initial !== undefined) {
      this.initial = waiter.initial;
      // The others may be waiting for a semaphore that does not exist yet.
      this.turn.recheck();
    }
    this.endSettlementPause();
    this.advance();
  }

  /** Called when callers have left the line: their time has ended, or they were refused. */
  left(waiters: readonly Waiter[]): void {
    for (const waiter of waiters) this.forget(waiter);
    if (this.length === 0) this.turn.onEmpty();
    else if (this.blocked !== undefined && waiters.includes(this.blocked) && this.callers.failure === undefined)
      this.turn.recheck();
    this.advance();
  }

  /** Asks again if the callers rest. */
  recheck(): void {
    this.turn.recheck();
  }

  /** Rejects all waiters. Settles when the request under way is answered. */
  async close(): Promise<void> {
    this.closed = true;
    this.callers.refuseWhere(
      ({ what, name }) =>
        new LockAbortedError(`Waiting for ${what} ended because the lock service was closed`, name, {
          byShutdown: true,
        }),
    );
    this.turn.close();
    this.endSettlementPause();
    await this.underWay;
  }

  private get state(): 'idle' | 'asking' | 'resting' | 'backing off' | 'settling' | 'closed' {
    if (this.closed) return 'closed';
    if (this.isAsking) return 'asking';
    if (this.settlementTimer !== undefined) return 'settling';
    if (this.turn.resting) return this.callers.failure === undefined ? 'resting' : 'backing off';
    return 'idle';
  }

  /** Sends the next request, if the state allows one. */
  private advance(): void {
    const { state } = this;
    if (state === 'closed' || state === 'asking' || state === 'settling') return;
    const mayAsk = state === 'idle' || this.triers > 0;
    if (mayAsk) this.batch ??= this.nextBatch(state === 'idle');
    const { batch } = this;
    if (mayAsk && batch !== undefined) this.services.runtime.detached(() => this.ask(batch));
    else if (batch === undefined && this.callers.isEmpty) this.end();
  }

  // ── idle → asking ──────────────────────────────────────────────────────────────────────────────────────────────────

  private nextBatch(waitersMayAsk: boolean): Batch<Waiter> | undefined {
    // Callers that try once must not starve the waiters.
    const isWaitersTurn = this.triedLast && waitersMayAsk && this.length > 0;
    const triesOnce = this.triers > 0 && !isWaitersTurn;
    const waiters = this.source.selectBatch(triesOnce ? this.equalTries() : this.waiters(false));
    if (waiters.length === 0) return undefined;
    const { initial } = this;
    const request = this.source.request(waiters, this.nextRequest(), initial);
    return { waiters, request, initial, triesOnce, unsettled: false };
  }

  private *waiters(triesOnce: boolean): Generator<Waiter> {
    for (const waiter of this.callers.waiters) if (waiter.triesOnce === triesOnce) yield waiter;
  }

  /**
   * Callers that try once and want as many permits as the first of them. Others are left out, so that no caller fails
   * because another one wants more.
   */
  private *equalTries(): Generator<Waiter> {
    let first: Waiter | undefined;
    for (const trier of this.waiters(true)) {
      first ??= trier;
      if (trier.permits === first.permits) yield trier;
    }
  }

  private ask(batch: Batch<Waiter>): void {
    this.triedLast = batch.triesOnce;
    this.turn.begin();
    this.underWay = batch.request.send(batch.unsettled).then(
      (result) => this.answered(batch, result),
      (error) => this.failed(batch, error),
    );
  }

  // ── asking → idle, resting ─────────────────────────────────────────────────────────────────────────────────────────

  private answered(batch: Batch<Waiter>, { served, remaining, missing, late }: GrantResult): void {
    if (late !== undefined) {
      // The permits are given back, so the next request must use new ids.
      batch.unsettled = false;
      return this.failed(batch, late);
    }
    const { waiters, request, triesOnce, unsettled } = batch;
    this.underWay = this.batch = this.callers.failure = undefined;
    const gone: number[] = [];
    for (let index = 0; index < served; index++) {
      if (this.remove(waiters[index])) request.grant(index);
      else gone.push(index);
    }
    if (gone.length > 0) request.giveBack(gone);
    if (triesOnce) {
      for (const trier of waiters.slice(served)) if (this.remove(trier)) trier.refuse(this.callers.busy(trier));
    } else {
      if (served > 0) this.turn.acquired();
      // Ask again if the first unserved waiter has left (the next one may want fewer permits), if the request was a
      // repetition (its answer may be outdated), or if a caller that can create the semaphore has arrived meanwhile.
      const canCreate = missing && this.initial !== batch.initial;
      if (!unsettled && !canCreate && served < waiters.length && !waiters[served].settled) {
        this.blocked = waiters[served];
        this.turn.busy(remaining);
        this.callers.rest();
      }
    }
    this.advance();
  }

  // ── asking → backing off, settling ─────────────────────────────────────────────────────────────────────────────────

  private failed(batch: Batch<Waiter>, error: BackendError): void {
    this.underWay = undefined;
    this.callers.noteFailure(error);
    batch.unsettled ||= batch.request.takesPermits && error.outcome === 'unknown';
    const isPermanent = error.kind !== 'unavailable';
    if (isPermanent || !batch.unsettled) this.batch = undefined;
    const refused = isPermanent ? [...batch.waiters, ...this.waiters(true)] : [...this.waiters(true)];
    for (const waiter of refused)
      if (this.remove(waiter)) waiter.refuse(permanentError(waiter, this.services.backend, error));
    if (this.length === 0) this.settle();
    else if (this.turn.failed()) this.callers.reportFailure();
    this.advance();
  }

  /** Repeats the request later although nobody waits for it, because it may have taken permits. */
  private settle(): void {
    if (this.batch === undefined || this.closed) return;
    this.settlementTimer = this.services.runtime.timer(SETTLEMENT_PAUSE, () => {
      this.endSettlementPause();
      this.advance();
    });
  }

  private endSettlementPause(): void {
    this.settlementTimer?.cancel();
    this.settlementTimer = undefined;
  }

  // ── Callers leave ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** Takes a caller out of the line in order to grant or refuse it. @returns false if it has left already */
  private remove(waiter: Waiter): boolean {
    const wasWaiting = this.callers.remove(waiter);
    if (wasWaiting) this.forget(waiter);
    return wasWaiting;
  }

  private forget(waiter: Waiter): void {
    if (waiter.triesOnce) this.triers--;
  }

  private end(): void {
    this.services.events.unawaited(this.close());
    this.retire();
  }
}
