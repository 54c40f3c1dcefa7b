import {
  type AcquireReply,
  type AcquireRequest,
  BackendError,
  type LockType,
  type Removal,
} from '../backends/lock-backend.js';
import { type Linked, LinkedQueue } from './collections/linked-queue.js';
import type { EngineContext } from './engine-context.js';
import { type LeaseClock, type Moment, validity } from './lease/lease-clock.js';

/** `pending` until the backend has answered; see {@link Attempt}. */
export type AttemptState = 'pending' | 'granted' | 'busy' | 'removed' | 'failed';

/** The requested lock. */
interface AttemptTerms {
  readonly type: LockType;
  readonly leaseTime: number;
}

/**
 * One request that takes a lock for one owner id, and what may have become of it: an acquisition for a queue, for one
 * of several names or for the reader in a writer's scope, or a transfer to the next waiter. This is the only place that
 * knows what an unanswered request may have done.
 *
 * States, and what leads to them (the first that applies):
 *
 * | state     | reached when                                                                   | in doubt         |
 * | --------- | ------------------------------------------------------------------------------ | ---------------- |
 * | `pending` | the request was sent, and is not answered yet                                  | -                |
 * | `removed` | granted, but this process released the owner by force before the answer came   | yes              |
 * | `failed`  | granted, but the answer came after the lease that it grants had ended          | yes              |
 * | `granted` | granted in time                                                                | no               |
 * | `busy`    | the lock is held by others                                                     | if copies remain |
 * | `failed`  | an error that says that the request was not executed (`refused`)               | no, unless spent |
 * | `failed`  | any other error, or a transfer that found another holder                       | yes              |
 *
 * In doubt: the backend may hold the lock for this owner, or may take it later, until {@link lateCopiesUntil} of its
 * clock, and nobody would release it. {@link abandon} releases the owner in the background until it is certainly gone.
 * The owner id must not be sent in another acquisition after that: the release has no time limit, and would free what
 * that acquisition took.
 *
 * It is a class for the reason given in collections/list-of.ts.
 */
export class Attempt implements AcquireRequest, Linked<Attempt> {
  previous: Attempt | undefined = undefined;
  next: Attempt | undefined = undefined;

  state: AttemptState = 'pending';
  /** Why it has failed. */
  error: BackendError | undefined = undefined;
  /** The backend may hold the lock for this owner although it was not granted. */
  inDoubt = false;
  /** The backend has released the owner, so that the next attempt needs another one. */
  ownerSpent = false;
  /** Copies of the request may be executed until this time of the backend's clock. */
  lateCopiesUntil: number | undefined = undefined;
  /** The moment before it was sent; once it is granted, the moment from which the lease is counted. */
  sent: Moment;

  readonly type: LockType;
  readonly leaseTime: number;
  /** Forced releases of the owner while the request was pending. */
  private interference: Interference | undefined = undefined;

  /**
   * @param reserve how many tokens to reserve for hand-offs. It may grow until the request is sent: callers that arrive
   * before that are handed the lock, too
   * @param waiterTimeout for how many milliseconds the owner is registered as a waiter where the lock is busy; 0: it is
   * not
   */
  constructor(
    private readonly context: EngineContext,
    readonly key: string,
    readonly owner: string,
    { type, leaseTime }: AttemptTerms,
    public reserve = 0,
    readonly waiterTimeout = 0,
  ) {
    this.type = type;
    this.leaseTime = leaseTime;
    this.sent = context.clock.now();
    context.pendingAttempts.begin(this);
  }

  /**
   * The backend has answered.
   *
   * @param reply undefined: a transfer did not find the former owner. A quorum may have passed the lock on in part, and
   * have taken that back
   * @param now a moment that has just been read
   */
  answered(reply: AcquireReply | undefined, now?: Moment): AttemptState {
    this.context.pendingAttempts.end(this);
    if (reply === undefined) return this.settle('failed', true);
    this.lateCopiesUntil = reply.validUntil;
    if (!reply.acquired) {
      this.ownerSpent = reply.spent ?? false;
      return this.settle('busy', reply.validUntil !== undefined);
    }
    if (this.interference === 'removed') return this.settle('removed', true);
    if (reply.confirmed !== undefined) this.sent = reply.confirmed;
    this.error = lateAnswer(this.context.clock, this.sent, this.leaseTime, now);
    return this.error === undefined ? this.settle('granted', false) : this.settle('failed', true);
  }

  /** There is no answer, or it was an error. */
  failed(error: BackendError): void {
    this.context.pendingAttempts.end(this);
    this.error = error;
    this.lateCopiesUntil = error.validUntil;
    this.ownerSpent = error.spent === true;
    this.settle('failed', error.outcome !== 'refused' || this.ownerSpent);
  }

  /** It, or a late copy of it, may be executed without an answer. Whoever keeps the owner id undoes that in the end. */
  get leavesTraces(): boolean {
    return this.inDoubt || this.lateCopiesUntil !== undefined;
  }

  /** This process released the owner by force while the request was pending. */
  get wasRemoved(): boolean {
    return this.interference === 'removed';
  }

  /**
   * Where it is {@link inDoubt}, releases the owner in the background. The owner id is spent then.
   *
   * @param waits the owner may also be registered as a waiter
   * @returns whether the next attempt needs another owner
   */
  abandon(waits = false): boolean {
    if (!this.inDoubt) return false;
    this.inDoubt = false;
    const { key, type, owner, leaseTime, lateCopiesUntil: validUntil } = this;
    this.context.backgroundReleases.release({ key, type, owner, leaseTime, validUntil, waits });
    return true;
  }

  /** A forced release concerns the owner. A removal by this process is certain, whatever else is heard. */
  interfere(interference: Interference): void {
    if (this.interference !== 'removed') this.interference = interference;
  }

  /** Another process says that it released the owner by force: nobody knows before the backend is asked. */
  get isDoubtful(): boolean {
    return this.interference === 'doubtful';
  }

  private settle(state: AttemptState, inDoubt: boolean): AttemptState {
    this.state = state;
    this.inDoubt = inDoubt;
    return state;
  }
}

/**
 * What a forced release did to an owner whose request was pending. `removed`: this process took the lock away, whatever
 * the answer will say. `doubtful`: another process says that it did.
 */
export type Interference = 'removed' | 'doubtful';

/**
 * The pending attempts of one engine, for forced releases: what happens to an owner is noted with its attempt, and ends
 * with it.
 */
export class PendingAttempts {
  private readonly pending = new LinkedQueue<Attempt>();

  /** @param doubted called when an attempt has ended whose owner may have been removed */
  constructor(private readonly doubted: (removal: Removal) => void) {}

  begin(attempt: Attempt): void {
    this.pending.push(attempt);
  }

  end(attempt: Attempt): void {
    this.pending.remove(attempt);
    if (attempt.isDoubtful) this.doubted({ key: attempt.key, owners: [attempt.owner] });
  }

  /** Owners were removed by a forced release. */
  interfere({ key, owners }: Removal, interference: Interference): void {
    for (const attempt of this.pending)
      if (attempt.key === key && owners.includes(attempt.owner)) attempt.interfere(interference);
  }
}

/**
 * An answer that arrives after the lease that it grants has ended grants nothing.
 *
 * @returns the failure that it is treated as; `undefined` where the answer is in time
 */
export function lateAnswer(
  clock: LeaseClock,
  sent: Moment,
  leaseTime: number,
  now?: Moment,
  outcome: BackendError['outcome'] = 'unknown',
): BackendError | undefined {
  if (clock.age(sent, now) < validity(leaseTime)) return undefined;
  const message = `the answer came after the lease of ${leaseTime} ms had ended`;
  return new BackendError(message, 'unavailable', outcome);
}
