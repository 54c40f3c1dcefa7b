import type { BackendError } from '../../backends/backend-error.js';
import type { Timer } from '../../backends/runtime.js';
import type { RequestId } from '../../backends/synchronizer-backend.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import { LockAbortedError } from '../errors.js';
import { Contention } from '../waiting/contention.js';
import type { WaitingQueue } from '../waiting/outages.js';
import { shutdownError } from '../waiting/wait-errors.js';
import { failedError, permitsBusyError, unansweredError } from './permit-errors.js';
import type { GrantResult, PermitRequest, PermitSource } from './permit-source.js';
import type { PermitWaiter } from './permit-waiter.js';

/** How long to wait before a request is repeated for which nobody waits any more, but whose result has to be known. */
const SETTLEMENT_PAUSE = 1_000;

interface Attempt<W> {
  readonly waiters: readonly W[];
  readonly request: PermitRequest;
  /** With how many permits the request creates a semaphore that does not exist. */
  readonly initial: number | undefined;
  /** Its waiters try once. */
  readonly triesOnce: boolean;
  /** It may have been executed: it is repeated until its result is known, even if nobody waits for it. */
  unsettled: boolean;
}

/**
 * The callers of one process that want permits of one semaphore, or wait for one latch, in order of arrival. Only the first of them send
 * requests, however many wait: they ask the backend, subscribe, ask again, and sleep until a message, the end of the earliest lease, their
 * waitTime or their AbortSignal. Callers that try once do not queue: they get what is available.
 */
export class PermitQueue<W extends PermitWaiter<never>> implements WaitingQueue {
  private readonly waiting = new Set<W>();
  private readonly tryingOnce = new Set<W>();
  private readonly contention: Contention;
  private attempt: Attempt<W> | undefined;
  /** Settles with the request that is under way. */
  private underWay: Promise<void> | undefined;
  /** The last attempt was for callers that try once. */
  private triedLast = false;
  private failure: BackendError | undefined;
  private settlementTimer: Timer | undefined;
  private closed = false;
  /** Its waiters rest, as far as outages are concerned. */
  private resting = false;
  /** With how many permits one of its callers wants to create a semaphore that does not exist. */
  private initial: number | undefined;

  constructor(
    private readonly context: AcquisitionContext,
    private readonly key: string,
    private readonly source: PermitSource<W>,
    private readonly nextRequest: () => RequestId,
    private readonly retire: () => void,
  ) {
    this.contention = new Contention(
      (listener) => source.subscribe(listener),
      context.runtime,
      () => this.resume(),
    );
  }

  /** How many callers wait; those that try once do not. */
  get length(): number {
    return this.waiting.size;
  }

  enqueue(waiter: W): void {
    (waiter.triesOnce ? this.tryingOnce : this.waiting).add(waiter);
    waiter.watch(() => this.onDeparture(waiter));
    if (this.initial === undefined && waiter.initial !== undefined) {
      this.initial = waiter.initial;
      // The others may wait for a semaphore that does not exist.
      this.contention.recheck();
    }
    this.cancelSettlement();
    this.resume();
  }

  get keys(): readonly string[] {
    return [this.key];
  }

  /** Shutdown: rejects all waiters, except those in a lock scope, which may need this to end. */
  rejectWaiters(): void {
    this.refuseWhere(({ scoped, name }) => (scoped ? undefined : shutdownError('Waiting', name)));
  }

  refuseWhere(errorOf: (waiter: W) => Error | undefined): void {
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
    if (this.resting) this.context.outages.unrest();
    this.resting = false;
    this.contention.close();
    this.cancelSettlement();
    for (const waiter of [...this.waiting, ...this.tryingOnce]) {
      this.remove(waiter);
      waiter.refuse(new LockAbortedError(`Waiting for ${waiter.what} ended with the lock service`, waiter.name));
    }
    await this.underWay;
  }

  private resume(): void {
    this.context.runtime.detached(() => this.sendNext());
    if (this.closed || this.waiting.size + this.tryingOnce.size > 0 || this.attempt !== undefined) return;
    this.context.events.unawaited(this.close());
    this.retire();
  }

  private sendNext(): void {
    if (this.closed || this.underWay !== undefined || this.settlementTimer !== undefined) return;
    const { resting } = this.contention;
    if (resting && this.tryingOnce.size === 0) return;
    // Callers that try once must not keep waiters from their turn.
    const isWaitersTurn = this.triedLast && !resting && this.waiting.size > 0;
    this.attempt ??= this.nextAttempt(this.tryingOnce.size > 0 && !isWaitersTurn);
    if (this.attempt !== undefined) this.send(this.attempt);
  }

  private send(attempt: Attempt<W>): void {
    this.triedLast = attempt.triesOnce;
    this.contention.begin();
    this.underWay = attempt.request.send(attempt.unsettled).then(
      (result) => this.onAnswer(attempt, result),
      (error) => this.onFailure(attempt, error),
    );
  }

  private nextAttempt(triesOnce: boolean): Attempt<W> | undefined {
    const waiters = this.source.selectBatch(triesOnce ? this.equalTries() : this.waiting);
    if (waiters.length === 0) return undefined;
    const { initial } = this;
    const request = this.source.request(waiters, this.nextRequest(), initial);
    return { waiters, request, initial, triesOnce, unsettled: false };
  }

  /** The callers that try once for as many permits as the first: none of them fails because of what another one wants. */
  private equalTries(): W[] {
    const [first] = this.tryingOnce;
    return [...this.tryingOnce].filter(({ permits }) => permits === first.permits);
  }

  private onAnswer(attempt: Attempt<W>, { served, remaining, missing, late }: GrantResult): void {
    if (late !== undefined) {
      // The permits are given back: the next attempt must not ask for the same ones.
      attempt.unsettled = false;
      return this.onFailure(attempt, late);
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
      for (const waiter of waiters.slice(served)) if (this.remove(waiter)) waiter.refuse(permitsBusyError(waiter));
    } else {
      if (served > 0) this.contention.acquired();
      // If the first unserved waiter has left, the next one may want less. The answer to a repeated request may be outdated. A caller that
      // can create the semaphore may have come meanwhile. In these cases, ask again.
      const canCreate = missing && this.initial !== attempt.initial;
      if (!unsettled && !canCreate && served < waiters.length && this.waiting.has(waiters[served]))
        this.rest(remaining);
    }
    this.resume();
  }

  private rest(remaining: number): void {
    this.contention.busy(remaining);
    if (!this.resting) this.context.outages.rest();
    this.resting = true;
  }

  private onFailure(attempt: Attempt<W>, error: BackendError): void {
    this.underWay = undefined;
    this.failure = error;
    attempt.unsettled ||= attempt.request.takesPermits && error.outcome === 'unknown';
    const isPermanent = error.kind !== 'unavailable';
    if (isPermanent || !attempt.unsettled) this.attempt = undefined;
    const refused = isPermanent ? [...attempt.waiters, ...this.tryingOnce] : [...this.tryingOnce];
    for (const waiter of refused)
      if (this.remove(waiter)) waiter.refuse(failedError(waiter, this.context.backend, error));
    const [head] = this.waiting;
    if (head === undefined) this.settleLater();
    else if (this.contention.failed())
      this.context.outages.attemptFailed(() => failedError(head, this.context.backend, error));
    this.resume();
  }

  /** Nobody waits for the result, but it may be a grant. */
  private settleLater(): void {
    if (this.attempt === undefined || this.closed) return;
    this.settlementTimer = this.context.runtime.timer(SETTLEMENT_PAUSE, () => {
      this.cancelSettlement();
      this.resume();
    });
  }

  private cancelSettlement(): void {
    this.settlementTimer?.cancel();
    this.settlementTimer = undefined;
  }

  /** @returns why the waiter was not served, if its time is over */
  private onDeparture(waiter: W): Error {
    const { backend, outages } = this.context;
    const failure = this.failure ?? outages.failure(this.keys);
    const isSilent = outages.isSilent(waiter, this.keys, this.underWay !== undefined);
    this.leave(waiter);
    if (failure !== undefined) return failedError(waiter, backend, failure);
    return isSilent ? unansweredError(waiter, backend) : permitsBusyError(waiter);
  }

  private leave(waiter: W): void {
    const [head] = this.waiting;
    this.remove(waiter);
    if (this.waiting.size === 0) this.contention.onEmpty();
    else if (waiter === head && this.failure === undefined) this.contention.recheck();
    this.resume();
  }

  /** False: it had left already. */
  private remove(waiter: W): boolean {
    return this.waiting.delete(waiter) || this.tryingOnce.delete(waiter);
  }
}
