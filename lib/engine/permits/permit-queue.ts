import type { BackendError } from '../../backends/lock-backend.js';
import type { Timer } from '../../backends/runtime.js';
import type { RequestId } from '../../backends/synchronizer-backend.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import { LockAbortedError } from '../errors.js';
import { Contention } from '../waiting/contention.js';
import { shutdownError } from '../waiting/wait-errors.js';
import { backendFailure, noAnswerError, unavailablePermitsError } from './permit-errors.js';
import type { GrantResult, PermitRequest, PermitSource, PermitWaiter } from './permit-request.js';

/** Pause between questions that nobody waits for any more, but whose answer has to be known. */
const AFTERMATH_PAUSE = 1_000;

interface Attempt<C> {
  readonly callers: readonly C[];
  readonly question: PermitRequest;
  /** On behalf of callers that try once. */
  readonly trying: boolean;
  /** It may have been executed: it is asked again until its answer is known, whoever waits. */
  unsettled: boolean;
}

/**
 * The callers of one process that want permits of one semaphore, or wait for one latch: first come, first served, and only the
 * first of them ask the backend, however many wait. They ask, listen, ask again, and sleep until a message, the end of the earliest
 * lease, their waitTime or their AbortSignal. Callers that try once do not stand in line: what is available is theirs.
 */
export class PermitQueue<C extends PermitWaiter<never>> {
  private readonly waiting = new Set<C>();
  private readonly triers = new Set<C>();
  private readonly contention: Contention;
  private attempt: Attempt<C> | undefined;
  /** The question that is under way. */
  private asking: Promise<void> | undefined;
  private triedLast = false;
  private answeredOnce = false;
  private failure: BackendError | undefined;
  private settlementTimer: Timer | undefined;
  private closed = false;

  constructor(
    private readonly context: AcquisitionContext,
    private readonly supply: PermitSource<C>,
    private readonly nextRequest: () => RequestId,
    private readonly retire: () => void,
  ) {
    this.contention = new Contention(
      (listener) => supply.subscribe(listener),
      context.runtime,
      () => this.resume(),
    );
  }

  enqueue(caller: C): void {
    (caller.triesOnce ? this.triers : this.waiting).add(caller);
    caller.watch(() => this.depart(caller));
    this.endAftermath();
    this.resume();
  }

  /** Shutdown: sends away who waits, but for callers that need this to end. */
  rejectWaiters(): void {
    for (const caller of [...this.waiting, ...this.triers]) {
      if (caller.scoped) continue;
      this.leave(caller);
      caller.refuse(shutdownError('Waiting', caller.name));
    }
  }

  /** Sends everybody away. Settles when the question that is under way is answered. */
  async close(): Promise<void> {
    this.closed = true;
    this.contention.close();
    this.endAftermath();
    for (const caller of [...this.waiting, ...this.triers]) {
      this.remove(caller);
      caller.refuse(new LockAbortedError(`Waiting for ${caller.what} ended with the lock service`, caller.name));
    }
    await this.asking;
  }

  private resume(): void {
    this.context.runtime.detached(() => this.pump());
    if (this.closed || this.waiting.size + this.triers.size > 0 || this.attempt !== undefined) return;
    void this.close();
    this.retire();
  }

  private pump(): void {
    if (this.closed || this.asking !== undefined || this.settlementTimer !== undefined) return;
    const { resting } = this.contention;
    if (resting && this.triers.size === 0) return;
    // Those who try must not keep those who wait from their turn.
    const waitersTurn = this.triedLast && !resting && this.waiting.size > 0;
    this.attempt ??= this.nextAttempt(this.triers.size > 0 && !waitersTurn);
    if (this.attempt !== undefined) this.ask(this.attempt);
  }

  private ask(attempt: Attempt<C>): void {
    this.triedLast = attempt.trying;
    this.contention.begin();
    this.asking = attempt.question.send(attempt.unsettled).then(
      (supplied) => this.answered(attempt, supplied),
      (error) => this.failed(attempt, error),
    );
  }

  private nextAttempt(trying: boolean): Attempt<C> | undefined {
    const callers = this.supply.group(trying ? this.alikeTriers() : this.waiting);
    if (callers.length === 0) return undefined;
    return { callers, trying, unsettled: false, question: this.supply.request(callers, this.nextRequest()) };
  }

  /** Those that want as much as the first: none of them is refused for what another one wants. */
  private alikeTriers(): C[] {
    const [first] = this.triers;
    return [...this.triers].filter(({ permits }) => permits === first.permits);
  }

  private answered({ callers, question, trying, unsettled }: Attempt<C>, { served, remaining }: GrantResult): void {
    this.asking = this.attempt = this.failure = undefined;
    this.answeredOnce = true;
    const gone: number[] = [];
    for (let index = 0; index < served; index++) {
      if (this.remove(callers[index])) question.grant(index);
      else gone.push(index);
    }
    if (gone.length > 0) question.takeBack(gone);
    if (trying) {
      for (const trier of callers.slice(served)) if (this.remove(trier)) trier.refuse(unavailablePermitsError(trier));
    } else {
      if (served > 0) this.contention.acquired();
      // Whoever comes after one that left may want less. What was asked again may have been answered long ago: it is asked anew.
      if (!unsettled && served < callers.length && this.waiting.has(callers[served])) this.contention.busy(remaining);
    }
    this.resume();
  }

  private failed(attempt: Attempt<C>, error: BackendError): void {
    this.asking = undefined;
    this.failure = error;
    attempt.unsettled ||= attempt.question.takes && error.outcome === 'unknown';
    const final = error.kind !== 'unavailable';
    if (final || !attempt.unsettled) this.attempt = undefined;
    const refused = final ? [...attempt.callers, ...this.triers] : [...this.triers];
    for (const caller of refused)
      if (this.remove(caller)) caller.refuse(backendFailure(caller, this.context.backend, error));
    const [head] = this.waiting;
    if (head === undefined) this.askLater();
    else if (this.contention.failed())
      this.context.events.emit('error', backendFailure(head, this.context.backend, error));
    this.resume();
  }

  /** Nobody waits for the answer, but it may be yes. */
  private askLater(): void {
    if (this.attempt === undefined || this.closed) return;
    this.settlementTimer = this.context.runtime.timer(AFTERMATH_PAUSE, () => {
      this.endAftermath();
      this.resume();
    });
  }

  private endAftermath(): void {
    this.settlementTimer?.cancel();
    this.settlementTimer = undefined;
  }

  private depart(caller: C): Error {
    const known = this.answeredOnce && this.failure === undefined;
    this.leave(caller);
    if (known) return unavailablePermitsError(caller);
    const { backend } = this.context;
    return this.failure ? backendFailure(caller, backend, this.failure) : noAnswerError(caller, backend);
  }

  private leave(caller: C): void {
    const [head] = this.waiting;
    this.remove(caller);
    if (this.waiting.size === 0) this.contention.onEmpty();
    else if (caller === head && this.failure === undefined) this.contention.recheck();
    this.resume();
  }

  /** False: it was not there any more. */
  private remove(caller: C): boolean {
    return this.waiting.delete(caller) || this.triers.delete(caller);
  }
}
