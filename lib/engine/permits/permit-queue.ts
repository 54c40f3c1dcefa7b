import { type BackendError, noAnswer } from '../../backends/backend-error.js';
import type { LockBackend } from '../../backends/lock-backend.js';
import type { Runtime, Timer } from '../../backends/runtime.js';
import type { Subscription, Wake } from '../../backends/subscription.js';
import type { RequestId } from '../../backends/synchronizer-backend.js';
import { LockAbortedError, LockBusyError, LockUnavailableError } from '../errors.js';
import type { Services } from '../services.js';
import type { WaitingQueue } from '../wait/outage-limit.js';
import type { RestingCallers } from '../wait/ping-while-waiting.js';
import { TurnToAsk } from '../wait/turn-to-ask.js';
import { shutdownError } from '../wait/wait-errors.js';
import { Caller, type WaitTerms } from '../wait/waiter.js';
import { failedError, type Synchronizer } from './synchronizer.js';

/**
 * The pause in milliseconds before a request is repeated although all its waiters have left. It is repeated because its
 * result has to be known.
 */
const SETTLEMENT_PAUSE = 1_000;

/** A caller that wants permits, or waits for a latch to open (and takes no permits). */
export class PermitWaiter<Granted, Terms extends WaitTerms = WaitTerms> extends Caller<Granted> {
  declare readonly terms: Terms;
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
interface Attempt<Waiter> {
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
 * many callers wait, only one request is sent at a time, for the first of them. A queue is in one of these states:
 *
 *   idle No request is under way, and the first waiter may ask. → asking. If nobody waits, the queue is discarded.
 *   asking A request is under way. → idle if it served all its waiters, resting if it did not, backing off or settling
 *   if it failed. resting There were too few permits for the first waiter. → idle after a message, when the earliest
 *   lease ends, when this waiter leaves, or when a caller arrives that can create the semaphore. backing off The last
 *   request failed. → idle after a pause, each longer than the previous one. A request that may have been executed is
 *   repeated unchanged, so that it takes no permits twice. settling The last request failed and may have taken permits,
 *   but all waiters have left. → idle after a second, or when a caller arrives. The request is repeated until its
 *   result is known, and its permits are given back. closed All callers were refused. If a request is under way, its
 *   permits are given back.
 *
 * Callers that try once (`waitTime: 0`) do not wait. Requests for them are also sent while the others rest or back off;
 * otherwise they take turns with the others.
 */
export class PermitQueue<Waiter extends PermitWaiter<never>> implements WaitingQueue, RestingCallers {
  readonly keys: readonly string[];
  private readonly waiting = new Set<Waiter>();
  private readonly tryingOnce = new Set<Waiter>();
  private readonly turn: TurnToAsk;
  /** The request that is under way or has to be repeated. */
  private attempt: Attempt<Waiter> | undefined;
  /** Settles when the request under way settles. */
  private underWay: Promise<void> | undefined;
  private settlementTimer: Timer | undefined;
  /** The failure of the last request. */
  private failure: BackendError | undefined;
  /** Whether the last request was for callers that try once. */
  private triedLast = false;
  /** The number of permits with which one of the callers wants to create a missing semaphore. */
  private initial: number | undefined;
  resting = false;
  private closed = false;

  constructor(
    private readonly services: Pick<Services, 'backend' | 'events' | 'outages' | 'pings' | 'runtime'>,
    key: string,
    private readonly source: PermitSource<Waiter>,
    private readonly nextRequest: () => RequestId,
    private readonly retire: () => void,
  ) {
    this.keys = [key];
    const subscribe = (listener: (wake: Wake) => void) => source.subscribe(listener);
    this.turn = new TurnToAsk(subscribe, services.runtime, () => this.advance());
  }

  /** The number of waiting callers, without those that try once. */
  get length(): number {
    return this.waiting.size;
  }

  enqueue(waiter: Waiter): void {
    (waiter.triesOnce ? this.tryingOnce : this.waiting).add(waiter);
    waiter.watch(() => this.departed(waiter));
    if (this.initial === undefined && waiter.initial !== undefined) {
      this.initial = waiter.initial;
      // The others may be waiting for a semaphore that does not exist yet.
      this.turn.recheck();
    }
    this.endSettlementPause();
    this.advance();
  }

  /** Shutdown: rejects all waiters except those in a lock scope, which may need the permits to finish. */
  rejectWaiters(): void {
    this.refuseWhere(({ scoped, name }) => (scoped ? undefined : shutdownError('Waiting', name)));
  }

  refuseWhere(errorOf: (waiter: Waiter) => Error | undefined): void {
    for (const waiter of [...this.waiting, ...this.tryingOnce]) {
      const error = errorOf(waiter);
      if (error === undefined) continue;
      this.leave(waiter);
      waiter.refuse(error);
    }
  }

  /** Rejects all waiters. Settles when the request under way is answered. */
  async close(): Promise<void> {
    this.closed = true;
    this.services.pings.unrest(this);
    this.turn.close();
    this.endSettlementPause();
    for (const waiter of [...this.waiting, ...this.tryingOnce]) {
      this.remove(waiter);
      waiter.refuse(
        new LockAbortedError(`Waiting for ${waiter.what} ended because the lock service was closed`, waiter.name),
      );
    }
    await this.underWay;
  }

  private get state(): 'idle' | 'asking' | 'resting' | 'backing off' | 'settling' | 'closed' {
    if (this.closed) return 'closed';
    if (this.underWay !== undefined) return 'asking';
    if (this.settlementTimer !== undefined) return 'settling';
    if (this.turn.resting) return this.failure === undefined ? 'resting' : 'backing off';
    return 'idle';
  }

  /** Sends the next request, if the state allows one. */
  private advance(): void {
    const { state } = this;
    if (state === 'closed' || state === 'asking' || state === 'settling') return;
    const mayAsk = state === 'idle' || this.tryingOnce.size > 0;
    if (mayAsk) this.attempt ??= this.nextAttempt(state === 'idle');
    const { attempt } = this;
    if (mayAsk && attempt !== undefined) this.services.runtime.detached(() => this.ask(attempt));
    else if (attempt === undefined && this.waiting.size === 0) this.end();
  }

  // ── idle → asking ──────────────────────────────────────────────────────────────────────────────────────────────────

  private nextAttempt(waitersMayAsk: boolean): Attempt<Waiter> | undefined {
    // Callers that try once must not starve the waiters.
    const isWaitersTurn = this.triedLast && waitersMayAsk && this.waiting.size > 0;
    const triesOnce = this.tryingOnce.size > 0 && !isWaitersTurn;
    const waiters = this.source.selectBatch(triesOnce ? this.equalTries() : this.waiting);
    if (waiters.length === 0) return undefined;
    const { initial } = this;
    const request = this.source.request(waiters, this.nextRequest(), initial);
    return { waiters, request, initial, triesOnce, unsettled: false };
  }

  /**
   * Callers that try once and want as many permits as the first of them. Others are left out, so that no caller fails
   * because another one wants more.
   */
  private equalTries(): Waiter[] {
    const [first] = this.tryingOnce;
    return [...this.tryingOnce].filter(({ permits }) => permits === first.permits);
  }

  private ask(attempt: Attempt<Waiter>): void {
    this.triedLast = attempt.triesOnce;
    this.turn.begin();
    this.underWay = attempt.request.send(attempt.unsettled).then(
      (result) => this.answered(attempt, result),
      (error) => this.failed(attempt, error),
    );
  }

  // ── asking → idle, resting ─────────────────────────────────────────────────────────────────────────────────────────

  private answered(attempt: Attempt<Waiter>, { served, remaining, missing, late }: GrantResult): void {
    if (late !== undefined) {
      // The permits are given back, so the next request must use new ids.
      attempt.unsettled = false;
      return this.failed(attempt, late);
    }
    const { waiters, request, triesOnce, unsettled } = attempt;
    this.underWay = this.attempt = this.failure = undefined;
    const gone: number[] = [];
    for (let index = 0; index < served; index++) {
      if (this.remove(waiters[index])) request.grant(index);
      else gone.push(index);
    }
    if (gone.length > 0) request.giveBack(gone);
    if (triesOnce) {
      for (const waiter of waiters.slice(served)) if (this.remove(waiter)) waiter.refuse(busyError(waiter));
    } else {
      if (served > 0) this.turn.acquired();
      // Ask again if the first unserved waiter has left (the next one may want fewer permits), if the request was a
      // repetition (its answer may be outdated), or if a caller that can create the semaphore has arrived meanwhile.
      const canCreate = missing && this.initial !== attempt.initial;
      if (!unsettled && !canCreate && served < waiters.length && this.waiting.has(waiters[served]))
        this.rest(remaining);
    }
    this.advance();
  }

  private rest(remaining: number): void {
    this.turn.busy(remaining);
    this.services.pings.rest(this);
  }

  // ── asking → backing off, settling ─────────────────────────────────────────────────────────────────────────────────

  private failed(attempt: Attempt<Waiter>, error: BackendError): void {
    const { backend, outages } = this.services;
    this.underWay = undefined;
    this.failure = error;
    attempt.unsettled ||= attempt.request.takesPermits && error.outcome === 'unknown';
    const isPermanent = error.kind !== 'unavailable';
    if (isPermanent || !attempt.unsettled) this.attempt = undefined;
    const refused = isPermanent ? [...attempt.waiters, ...this.tryingOnce] : [...this.tryingOnce];
    for (const waiter of refused) if (this.remove(waiter)) waiter.refuse(failedError(waiter, backend, error));
    const [head] = this.waiting;
    if (head === undefined) this.settle();
    else if (this.turn.failed()) outages.attemptFailed(() => failedError(head, backend, error));
    this.advance();
  }

  /** Repeats the request later although nobody waits for it, because it may have taken permits. */
  private settle(): void {
    if (this.attempt === undefined || this.closed) return;
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

  /** Handles a waiter whose waitTime has ended or whose signal was aborted. @returns why it was not served */
  private departed(waiter: Waiter): Error {
    const { backend, outages } = this.services;
    const failure = this.failure ?? outages.failure(this.keys);
    const isSilent = outages.isSilent(waiter, this.keys, this.state === 'asking');
    this.leave(waiter);
    if (failure !== undefined) return failedError(waiter, backend, failure);
    return isSilent ? unansweredError(waiter, backend) : busyError(waiter);
  }

  private leave(waiter: Waiter): void {
    const [head] = this.waiting;
    this.remove(waiter);
    if (this.waiting.size === 0) this.turn.onEmpty();
    else if (waiter === head && this.failure === undefined) this.turn.recheck();
    this.advance();
  }

  /** Returns false if the waiter had already left. */
  private remove(waiter: Waiter): boolean {
    return this.waiting.delete(waiter) || this.tryingOnce.delete(waiter);
  }

  private end(): void {
    this.services.events.unawaited(this.close());
    this.retire();
  }
}

/** The permits did not become available in time. */
function busyError({ name, what, permits, terms }: PermitWaiter<never>): LockBusyError {
  const within = terms.waitTime > 0 ? ` within ${terms.waitTime} ms` : '';
  const wanted = permits === 1 ? `A permit of ${what} was` : `${permits} permits of ${what} were`;
  return new LockBusyError(`${wanted} not available${within}`, name, -1, undefined);
}

/** The backend did not answer in time. */
function unansweredError({ name, what, terms }: PermitWaiter<never>, backend: LockBackend): LockUnavailableError {
  const cause = noAnswer(backend, terms.waitTime);
  return new LockUnavailableError(`The backend gave no answer about ${what}: ${cause.message}`, name, { cause });
}
