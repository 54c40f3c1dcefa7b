import {
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
  BackendError,
  type Busy,
  type HeldType,
  type NewestCall,
  type Removal,
} from '../../backends/lock-backend.js';
import { type Linked, LinkedQueue } from '../collections/linked-queue.js';
import type { LeaseClock, Moment } from '../time/lease-clock.js';
import type { UnusedOwner } from './unused-owner.js';

/** The part of the terms that the request needs. */
interface AttemptTerms {
  readonly type: HeldType;
  readonly leaseTime: number;
  readonly permits?: number | undefined;
}

/** The parts that an attempt needs. */
export interface AttemptServices {
  readonly clock: LeaseClock;
  readonly pendingAttempts: PendingAttempts;
  readonly backgroundReleases: { release(owner: UnusedOwner): void };
}

/** The part of a reply that decides what the request did. */
export type AttemptReply =
  | Pick<Acquired, 'acquired' | 'validUntil' | 'confirmed'>
  | Pick<Busy, 'acquired' | 'validUntil' | 'spent' | 'keptLonger'>;

/**
 * An attempt that has ended. It is typed by its state instead of being another object, because each acquisition has
 * one.
 */
export type Outcome<Reply extends AttemptReply = AcquireReply> =
  | Granted<Reply>
  | FoundBusy<Reply>
  | Failed
  | (Attempt & { readonly state: 'removed' | 'gone' });

/** The owner holds the lock. */
export type Granted<Reply extends AttemptReply = AcquireReply> = Attempt & {
  readonly state: 'granted';
  readonly reply: Extract<Reply, { readonly acquired: true }>;
};

/** Others hold the lock. */
export type FoundBusy<Reply extends AttemptReply = AcquireReply> = Attempt & {
  readonly state: 'busy';
  readonly reply: Extract<Reply, { readonly acquired: false }>;
};

/** There was no usable answer. */
export type Failed = Attempt & { readonly state: 'failed'; readonly error: BackendError };

/** Receives the outcome of an attempt. */
export interface Asker<Caller, Reply extends AttemptReply> {
  settled(outcome: Outcome<Reply>, caller: Caller): void;
}

/**
 * One request that takes a lock for one owner id, and its possible effects: an acquisition for a queue, for one of
 * several names or for the reader in a writer's scope, or a transfer to the next waiter. Only this class decides what
 * an unanswered request may have done.
 *
 * States, and what leads to them (the first match applies):
 *
 * | state     | reached when                                                                   | in doubt         |
 * | --------- | ------------------------------------------------------------------------------ | ---------------- |
 * | `pending` | the request was sent, and has not been answered yet | - |
 * | `removed` | granted, but this process released the owner by force before the answer came   | yes              |
 * | `failed`  | granted, but the answer came after the lease that it grants had ended          | yes              |
 * | `granted` | granted in time                                                                | no               |
 * | `busy`    | the lock is held by others                                                     | if copies remain |
 * | `failed`  | an error that says that the request was not executed (`refused`)               | no, unless spent |
 * | `failed`  | any other error                                                                | yes              |
 * | `gone`    | a transfer did not find the former owner. (A quorum may have transferred the   | yes              |
 * |           | lock on some nodes and then undone that.)                                      |                  |
 *
 * In doubt: the backend may hold the lock for this owner, or may still acquire it until its clock shows {@link
 * lateCopiesUntil}, and nobody would release it. {@link abandon} releases the owner in the background until it is
 * certainly gone. Do not send the owner id in another acquisition after that, because the release has no time limit and
 * would free the new lock. If several attempts use one owner id, {@link Doubt} adds up what they may have left.
 *
 * This is a class for the reason given in collections/list-of.ts.
 */
export class Attempt implements AcquireRequest, Linked<Attempt> {
  previous: Attempt | undefined = undefined;
  next: Attempt | undefined = undefined;

  state: 'pending' | 'granted' | 'busy' | 'removed' | 'gone' | 'failed' = 'pending';
  /** The answer, if there was one. */
  reply: AttemptReply | undefined = undefined;
  /** When the answer arrived. */
  answeredAt: Moment;
  /** Why the attempt failed. */
  error: BackendError | undefined = undefined;
  /** Whether the backend may hold the lock for this owner although it was not granted. */
  inDoubt = false;
  /** Whether the backend has released the owner, so that the next attempt needs a new one. */
  ownerSpent = false;
  /** See `WhenToAsk.begin`. */
  changesBefore = 0;
  /** Copies of the request may be executed until the backend's clock shows this time. */
  lateCopiesUntil: number | undefined = undefined;
  /** The moment before the request was sent; once granted, the moment from which the lease counts. */
  sent: Moment;

  readonly type: HeldType;
  readonly leaseTime: number;
  readonly permits: number | undefined;
  newest: NewestCall | undefined = undefined;
  /** Forced releases of the owner while the request was pending. */
  private interference: Interference | undefined = undefined;

  /**
   * @param reserve how many tokens to reserve for hand-offs. It may grow until the request is sent, so that it also
   *   covers callers that arrive before that
   * @param waiterTimeout for how many milliseconds the backend registers the owner as a waiter if the lock is busy; 0:
   *   it does not register it
   * @param pastLine whether others who wait in line need not go first
   * @param nonce for a place in line: see {@link AcquireRequest.nonce}
   * @param grantLease for a place in line: see {@link AcquireRequest.grantLease}
   */
  constructor(
    private readonly services: AttemptServices,
    readonly key: string,
    readonly owner: string,
    { type, leaseTime, permits }: AttemptTerms,
    public reserve = 0,
    readonly waiterTimeout = 0,
    readonly pastLine = false,
    readonly nonce?: string,
    readonly grantLease?: number,
  ) {
    this.type = type;
    this.leaseTime = leaseTime;
    this.permits = permits;
    this.sent = this.answeredAt = services.clock.now();
    services.pendingAttempts.begin(this);
  }

  /** Passes the outcome of the sent request to `asker`. */
  send<Caller, Reply extends AttemptReply>(request: Promise<Reply>, asker: Asker<Caller, Reply>, caller: Caller): void {
    request.then(
      (reply) => asker.settled(this.answered(reply), caller),
      (error) => asker.settled(this.failed(error), caller),
    );
  }

  /**
   * Like {@link send}, for callers that are not on the hot path. `use` is called in the same turn in which the attempt
   * ends, so that a forced release finds either the pending attempt or what `use` has made of it.
   */
  outcome<Reply extends AttemptReply, T>(
    request: Promise<Reply | undefined>,
    use: (outcome: Outcome<Reply>) => T,
  ): Promise<T> {
    return request.then(
      (reply) => use(this.answered(reply)),
      (error) => use(this.failed(error)),
    );
  }

  /**
   * Like {@link outcome}, for attempts that were sent in one request. Each of them is used, whatever `use` throws.
   *
   * @throws the first thing that `use` throws
   */
  static async outcomes<Reply extends AttemptReply>(
    attempts: readonly Attempt[],
    request: Promise<Reply>,
    use: (outcome: Outcome<Reply>, index: number) => void,
  ): Promise<void> {
    let reply: Reply | undefined;
    let error: BackendError | undefined;
    try {
      reply = await request;
    } catch (reason) {
      error = reason as BackendError;
    }
    const thrown: unknown[] = [];
    for (const [index, attempt] of attempts.entries()) {
      try {
        use(error === undefined ? attempt.answered(reply) : attempt.failed(error), index);
      } catch (reason) {
        thrown.push(reason);
      }
    }
    if (thrown.length > 0) throw thrown[0];
  }

  private answered<Reply extends AttemptReply>(reply: Reply | undefined): Outcome<Reply> {
    const { clock, pendingAttempts } = this.services;
    pendingAttempts.end(this);
    if (reply === undefined) return this.settle('gone', true);
    this.reply = reply;
    this.answeredAt = clock.now();
    this.lateCopiesUntil = reply.validUntil;
    if (!reply.acquired) {
      this.ownerSpent = reply.spent ?? false;
      return this.settle('busy', reply.validUntil !== undefined);
    }
    pendingAttempts.granted();
    if (this.interference === 'removed') return this.settle('removed', true);
    if (reply.confirmed !== undefined) this.sent = reply.confirmed;
    this.error = lateAnswer(clock, this.sent, this.leaseTime, this.answeredAt);
    return this.error === undefined ? this.settle('granted', false) : this.settle('failed', true);
  }

  private failed(error: BackendError): Failed {
    const { clock, pendingAttempts } = this.services;
    pendingAttempts.end(this);
    if (error.outcome === 'refused' && error.kind !== 'key')
      pendingAttempts.refusal = { key: this.key, error, at: clock.now().monotonic, isOver: false };
    this.error = error;
    this.lateCopiesUntil = error.validUntil;
    this.ownerSpent = error.spent === true;
    return this.settle('failed', error.outcome !== 'refused' || this.ownerSpent);
  }

  /**
   * Called when the request, or a copy of it, may still take effect. The code that keeps the owner id must release it
   * in the end.
   */
  get leavesTraces(): boolean {
    return this.inDoubt || this.lateCopiesUntil !== undefined;
  }

  /** See {@link Busy.keptLonger}. */
  get isPlaceKeptLonger(): boolean {
    return this.reply?.acquired === false && this.reply.keptLonger === true;
  }

  /** This process released the owner by force while the request was pending. */
  get wasRemoved(): boolean {
    return this.interference === 'removed';
  }

  /**
   * Releases the owner in the background if the attempt is {@link inDoubt}. The owner id must not be used again after
   * that.
   *
   * @param waits the owner may also be registered as a waiter by other requests
   * @returns whether the next attempt needs another owner
   */
  abandon(waits = false): boolean {
    if (!this.inDoubt) return false;
    this.inDoubt = false;
    const { key, type, owner, leaseTime, lateCopiesUntil: validUntil, waiterTimeout } = this;
    const mayWait = waits || waiterTimeout > 0;
    this.services.backgroundReleases.release({ key, type, owner, leaseTime, validUntil, waits: mayWait });
    return true;
  }

  /**
   * Records a forced release of the owner. A removal by this process is certain, so it takes precedence over reports by
   * others.
   */
  interfere(interference: Interference): void {
    if (this.interference !== 'removed') this.interference = interference;
  }

  /** Another process reports that it released the owner by force. Only the backend can confirm this. */
  get isDoubtful(): boolean {
    return this.interference === 'doubtful';
  }

  /** The one place where an attempt becomes its outcome: its callers have set what the state promises. */
  private settle<Ended>(state: Outcome['state'], inDoubt: boolean): Ended {
    this.state = state;
    this.inDoubt = inDoubt;
    return this as unknown as Ended;
  }
}

/**
 * What a forced release did to an owner whose request was pending. `removed`: this process took the lock away, whatever
 * the answer says. `doubtful`: another process reports that it did.
 */
export type Interference = 'removed' | 'doubtful';

/** See {@link PendingAttempts.refusal}. */
export interface Refusal {
  readonly key: string;
  readonly error: BackendError;
  /** On the monotonic clock. */
  readonly at: number;
  /** The backend has granted a lock since. */
  isOver: boolean;
}

/**
 * The pending attempts of one engine. A forced release is recorded in the attempt of its owner while the attempt
 * is pending.
 */
export class PendingAttempts {
  private readonly pending = new LinkedQueue<Attempt>();
  /** The attempt that has ended last, as an example of its class: see collections/examples.ts. */
  latest: Attempt | undefined = undefined;
  /** The last time that the backend refused to take a lock, although nobody held it. For `health()`. */
  refusal: Refusal | undefined;
  /** The last probe of `health()` that has failed. */
  failedProbe: Pick<Refusal, 'isOver'> | undefined;

  /** Called when an attempt has ended and its owner may have been removed. Set by ForcedReleases. */
  doubted: (removal: Removal) => void = () => {};

  begin(attempt: Attempt): void {
    this.pending.push(attempt);
  }

  granted(): void {
    if (this.refusal !== undefined) this.refusal.isOver = true;
    if (this.failedProbe !== undefined) this.failedProbe.isOver = true;
  }

  end(attempt: Attempt): void {
    this.pending.remove(attempt);
    this.latest = attempt;
    if (attempt.isDoubtful) this.doubted({ key: attempt.key, owners: [attempt.owner] });
  }

  /** Records that a forced release removed these owners. */
  interfere({ key, owners }: Removal, interference: Interference): void {
    for (const attempt of this.pending)
      if (attempt.key === key && owners.includes(attempt.owner)) attempt.interfere(interference);
  }
}

/**
 * Treats an answer that arrives after its lease has ended as a failure.
 *
 * @returns the failure; `undefined` when the answer is in time
 */
export function lateAnswer(
  clock: LeaseClock,
  sent: Moment,
  leaseTime: number,
  now?: Moment,
  outcome: BackendError['outcome'] = 'unknown',
): BackendError | undefined {
  if (clock.left(sent, leaseTime, now) > 0) return undefined;
  const message = `the answer came after the lease of ${leaseTime} ms had ended`;
  return new BackendError(message, 'unavailable', outcome);
}
