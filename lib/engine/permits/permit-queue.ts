import { type BackendError, noAnswer } from '../../backends/backend-error.js';
import type { LockBackend } from '../../backends/lock-backend.js';
import type { Runtime, Timer } from '../../backends/runtime.js';
import type { Subscription, Wake } from '../../backends/subscription.js';
import type { RequestId } from '../../backends/synchronizer-backend.js';
import type { EngineContext } from '../engine-context.js';
import { LockAbortedError, LockBusyError, LockUnavailableError } from '../errors.js';
import type { RestingCallers, WaitingQueue } from '../waiting/outages.js';
import { TurnToAsk } from '../waiting/turn-to-ask.js';
import { shutdownError } from '../waiting/wait-errors.js';
import { Caller, type WaitTerms } from '../waiting/waiter.js';
import { failedError, type Synchronizer } from './synchronizer.js';

/** Milliseconds between repetitions of a request for which nobody waits any more, but whose result has to be known. */
const SETTLEMENT_PAUSE = 1_000;

/** A caller that wants permits, or waits for a latch to open (which takes none). */
export class PermitWaiter<Granted, Terms extends WaitTerms = WaitTerms> extends Caller<Granted> {
  declare readonly terms: Terms;
  readonly what: string;
  /** As in {@link Synchronizer.initial}. */
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

/** Where the waiters of a queue get what they want, and how it is requested. */
export interface PermitSource<Waiter> {
  /** The waiters that one request can be sent for, from the first on. */
  selectBatch(waiters: Iterable<Waiter>): readonly Waiter[];
  /** @param initial with how many permits to create a semaphore that does not exist */
  request(waiters: readonly Waiter[], id: RequestId, initial: number | undefined): PermitRequest;
  /** Calls back when another request makes sense. */
  subscribe(listener: (wake: Wake) => void): Subscription;
}

/** One request to the backend on behalf of several waiters. Sent again, it gets the same result. */
export interface PermitRequest {
  /** Whether a grant takes permits: then the result has to be known even if nobody waits for it any more. */
  readonly takesPermits: boolean;
  /**
   * @param repeated the request was sent before and got no answer; that copy may still be under way
   * @throws BackendError
   */
  send(repeated: boolean): Promise<GrantResult>;
  /** Resolves a waiter that was served. */
  grant(index: number): void;
  /** Returns the permits of waiters that were served after they had left. */
  giveBack(indexes: readonly number[]): void;
}

export interface GrantResult {
  /** How many of the request's waiters, counted from the first, get what they want. */
  readonly served: number;
  /** Milliseconds after which another request makes sense without a message; −1: none does. */
  readonly remaining: number;
  /** The semaphore does not exist. */
  readonly missing?: boolean;
  /** They were granted, but the answer came after their leases had ended: they are given back. */
  readonly late?: BackendError;
}

/** A request, and for whom it is sent. */
interface Attempt<Waiter> {
  readonly waiters: readonly Waiter[];
  readonly request: PermitRequest;
  /** With how many permits the request creates a semaphore that does not exist. */
  readonly initial: number | undefined;
  /** Its waiters try once. */
  readonly triesOnce: boolean;
  /** It may have been executed: it is repeated until its result is known, even if nobody waits for it. */
  unsettled: boolean;
}

/**
 * The callers of one process that want permits of one semaphore, or wait for one latch, in order of arrival. However
 * many wait, there is one request at a time, for the first of them. A queue is in one of these states:
 *
 *   idle         Nothing is under way, and nothing keeps the first waiter from asking. → asking. If nobody waits, the queue retires.
 *   asking       A request is under way. → idle when it served its waiters, resting when it did not serve all of them, backing off or settling
 *                when it failed.
 *   resting      There was too little for the first waiter. → idle by a message, when the earliest lease ends, when this waiter leaves, or when
 *                a caller comes that can create the semaphore.
 *   backing off  The last request failed. → idle after a pause, each longer than the one before. If the request may have been executed, it is
 *                repeated as it was, so that it takes no permits twice.
 *   settling     The last request failed and may have taken permits, but nobody waits any more. → idle after a second, or when a caller comes.
 *                The request is repeated until its result is known, and what it took goes back.
 *   closed       All callers were refused. If a request is under way, what it takes goes back.
 *
 * Callers that try once (`waitTime: 0`) do not wait. They are asked for while the others rest or back off, too, and
 * otherwise take turns with them.
 */
export class PermitQueue<Waiter extends PermitWaiter<never>> implements WaitingQueue, RestingCallers {
  readonly keys: readonly string[];
  private readonly waiting = new Set<Waiter>();
  private readonly tryingOnce = new Set<Waiter>();
  private readonly turn: TurnToAsk;
  /** Under way, or to be repeated. */
  private attempt: Attempt<Waiter> | undefined;
  /** Settles with the request that is under way. */
  private underWay: Promise<void> | undefined;
  private settlementTimer: Timer | undefined;
  /** The error of the last request. */
  private failure: BackendError | undefined;
  /** The last request was for callers that try once. */
  private triedLast = false;
  /** With how many permits one of its callers wants to create a semaphore that does not exist. */
  private initial: number | undefined;
  resting = false;
  private closed = false;

  constructor(
    private readonly context: EngineContext,
    key: string,
    private readonly source: PermitSource<Waiter>,
    private readonly nextRequest: () => RequestId,
    private readonly retire: () => void,
  ) {
    this.keys = [key];
    const subscribe = (listener: (wake: Wake) => void) => source.subscribe(listener);
    this.turn = new TurnToAsk(subscribe, context.runtime, () => this.advance());
  }

  /** How many callers wait; those that try once do not. */
  get length(): number {
    return this.waiting.size;
  }

  enqueue(waiter: Waiter): void {
    (waiter.triesOnce ? this.tryingOnce : this.waiting).add(waiter);
    waiter.watch(() => this.departed(waiter));
    if (this.initial === undefined && waiter.initial !== undefined) {
      this.initial = waiter.initial;
      // The others may wait for a semaphore that does not exist.
      this.turn.recheck();
    }
    this.endSettlementPause();
    this.advance();
  }

  /** Shutdown: rejects all waiters, except those in a lock scope, which may need this to end. */
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

  /** Rejects all waiters. Settles when the request that is under way is answered. */
  async close(): Promise<void> {
    this.closed = true;
    this.context.outages.unrest(this);
    this.turn.close();
    this.endSettlementPause();
    for (const waiter of [...this.waiting, ...this.tryingOnce]) {
      this.remove(waiter);
      waiter.refuse(new LockAbortedError(`Waiting for ${waiter.what} ended with the lock service`, waiter.name));
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

  /** Something changed: sends the next request, if the state allows one. */
  private advance(): void {
    const { state } = this;
    if (state === 'closed' || state === 'asking' || state === 'settling') return;
    const mayAsk = state === 'idle' || this.tryingOnce.size > 0;
    if (mayAsk) this.attempt ??= this.nextAttempt(state === 'idle');
    const { attempt } = this;
    if (mayAsk && attempt !== undefined) this.context.runtime.detached(() => this.ask(attempt));
    else if (attempt === undefined && this.waiting.size === 0) this.end();
  }

  // ── idle → asking ────────────────────────────────────────────────────────────────────────────────────────────────────

  private nextAttempt(waitersMayAsk: boolean): Attempt<Waiter> | undefined {
    // Callers that try once must not keep waiters from their turn.
    const isWaitersTurn = this.triedLast && waitersMayAsk && this.waiting.size > 0;
    const triesOnce = this.tryingOnce.size > 0 && !isWaitersTurn;
    const waiters = this.source.selectBatch(triesOnce ? this.equalTries() : this.waiting);
    if (waiters.length === 0) return undefined;
    const { initial } = this;
    const request = this.source.request(waiters, this.nextRequest(), initial);
    return { waiters, request, initial, triesOnce, unsettled: false };
  }

  /**
   * The callers that try once for as many permits as the first: none of them fails because of what another one wants.
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

  // ── asking → idle, resting ───────────────────────────────────────────────────────────────────────────────────────────

  private answered(attempt: Attempt<Waiter>, { served, remaining, missing, late }: GrantResult): void {
    if (late !== undefined) {
      // The permits are given back: the next request must not ask for the same ones.
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
      // If the first unserved waiter has left, the next one may want less. The answer to a repeated request may be
      // outdated. A caller that can create the semaphore may have come meanwhile. In these cases, ask again.
      const canCreate = missing && this.initial !== attempt.initial;
      if (!unsettled && !canCreate && served < waiters.length && this.waiting.has(waiters[served]))
        this.rest(remaining);
    }
    this.advance();
  }

  private rest(remaining: number): void {
    this.turn.busy(remaining);
    this.context.outages.rest(this);
  }

  // ── asking → backing off, settling ───────────────────────────────────────────────────────────────────────────────────

  private failed(attempt: Attempt<Waiter>, error: BackendError): void {
    const { backend, outages } = this.context;
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

  /** Nobody waits for the result, but it may be a grant. */
  private settle(): void {
    if (this.attempt === undefined || this.closed) return;
    this.settlementTimer = this.context.runtime.timer(SETTLEMENT_PAUSE, () => {
      this.endSettlementPause();
      this.advance();
    });
  }

  private endSettlementPause(): void {
    this.settlementTimer?.cancel();
    this.settlementTimer = undefined;
  }

  // ── Callers leave ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** A waiter's time is over, or its signal has aborted. @returns why it was not served */
  private departed(waiter: Waiter): Error {
    const { backend, outages } = this.context;
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

  /** False: it had left already. */
  private remove(waiter: Waiter): boolean {
    return this.waiting.delete(waiter) || this.tryingOnce.delete(waiter);
  }

  private end(): void {
    this.context.events.unawaited(this.close());
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
