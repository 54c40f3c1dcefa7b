import { deadlineTimer, type Runtime, type Timer } from '../../backends/runtime.js';
import type { Attempt } from '../attempt.js';
import { LockAbortedError } from '../errors.js';
import type { Milliseconds } from '../terms/duration.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';

/** Why a caller left before it was served. */
export type Departure = 'timeout' | 'abort';

/** What ends a wait. */
export interface WaitTerms {
  /** 0: try once. */
  readonly waitTime: Milliseconds;
  /** How long an outage of the backend may last. */
  readonly outageTimeout: Milliseconds;
  readonly signal: AbortSignal | undefined;
}

/**
 * A caller that waits: for how long, what ends its wait, and whom to tell. It is settled once; from then on it has no
 * timer, no listener and no position in a queue.
 */
export abstract class Caller<Granted> {
  settled = false;
  /** It runs in a lock scope, and may wait even during shutdown. */
  scoped = false;
  /** Called when it is settled. Only for a wait that has been written down: see WaitJournal. */
  onSettled: (() => void) | undefined;

  /**
   * When the caller arrived, on the monotonic clock, if an outage was in progress then; 0: before any current outage.
   */
  calledAt = 0;

  /**
   * When it arrived; only where its wait is limited, because reading the clock for every caller took a tenth of a
   * hand-off's time.
   */
  private readonly since: number;
  private timer: Timer | undefined;
  private unlisten: (() => void) | undefined;

  constructor(
    readonly name: string,
    readonly terms: WaitTerms,
    private readonly runtime: Runtime,
    private readonly granted: (granted: Granted) => void,
    private readonly refused: (error: Error) => void,
  ) {
    this.since = this.timed ? runtime.monotonic() : 0;
  }

  /** How errors call what it waits for: `the lock 'order:1'`. */
  abstract get what(): string;

  /** Milliseconds that are left of its waitTime. */
  get remainingWait(): number {
    return this.terms.waitTime - (this.runtime.monotonic() - this.since);
  }

  /** For how many milliseconds it has waited; 0 where its wait is not limited. */
  get calledFor(): number {
    return this.timed ? this.runtime.monotonic() - this.since : 0;
  }

  /** It makes one attempt and does not wait. */
  get triesOnce(): boolean {
    return this.terms.waitTime === 0;
  }

  /** It has a waitTime or a signal that can end its wait. */
  get mayLeave(): boolean {
    return this.timed || this.terms.signal !== undefined;
  }

  private get timed(): boolean {
    return this.terms.waitTime > 0 && this.terms.waitTime !== Number.POSITIVE_INFINITY;
  }

  /**
   * Starts the timer and listens to the signal.
   *
   * @param leave removes the caller from its queue and returns the error for it; called before the caller gets that
   * error
   */
  watch(leave: (departure: Departure) => Error): void {
    const { waitTime, signal } = this.terms;
    if (signal !== undefined) {
      const listener = AbortListener.of(signal);
      const onAbort = () => {
        leave('abort');
        this.refuse(abortedError(this, signal));
      };
      listener.add(onAbort);
      this.unlisten = () => listener.remove(onAbort);
    }
    if (this.timed) {
      this.timer = deadlineTimer(this.runtime, waitTime, () => this.refuse(leave('timeout')), 'keep-alive');
    }
  }

  grant(granted: Granted): void {
    if (this.settle()) this.granted(granted);
  }

  refuse(error: Error): void {
    if (this.settle()) this.refused(error);
  }

  private settle(): boolean {
    if (this.settled) return false;
    this.settled = true;
    this.timer?.cancel();
    this.unlisten?.();
    this.onSettled?.();
    return true;
  }
}

/** A caller that waits for one lock. */
export class Waiter<Granted> extends Caller<Granted> {
  declare readonly terms: AcquisitionTerms;

  /** Links of the queue that it is in. */
  previous: this | undefined;
  next: this | undefined;

  /** The request for it that is pending. */
  attempt: Attempt | undefined;
  /**
   * For a fair lock: until this time of the backend's clock, earlier acquisitions without an answer may still be
   * executed.
   */
  lateCopiesUntil: number | undefined;
  /** The backend has released this owner id. The next acquisition needs a new one. */
  ownerSpent = false;
  /** A message for it arrived while its request was pending. */
  woken = false;
  private ownerId: string | undefined;

  constructor(
    name: string,
    private readonly newOwner: () => string,
    terms: AcquisitionTerms,
    runtime: Runtime,
    granted: (granted: Granted) => void,
    refused: (error: Error) => void,
  ) {
    super(name, terms, runtime, granted, refused);
  }

  /** Created when it is first needed: a waiter that is handed the lock uses its predecessor's. */
  get owner(): string {
    this.ownerId ??= this.newOwner();
    return this.ownerId;
  }

  /**
   * An acquisition under this owner id may have been executed, or may still be executed until this time of the
   * backend's clock.
   */
  noteLateCopies(validUntil = 0): void {
    this.lateCopiesUntil = Math.max(this.lateCopiesUntil ?? 0, validUntil);
  }

  /** Gives up the current owner: whatever the backend holds for it belongs to nobody from now on. */
  renewOwner(): void {
    this.ownerId = this.lateCopiesUntil = undefined;
    this.ownerSpent = false;
  }

  get what(): string {
    return `the lock '${this.name}'`;
  }
}

/** The caller's own signal has ended its wait. */
export function abortedError(
  { what, name }: Pick<Caller<never>, 'what' | 'name'>,
  signal: AbortSignal,
): LockAbortedError {
  return new LockAbortedError(`Waiting for ${what} was aborted by the caller's signal`, name, { cause: signal.reason });
}

const listeners = new WeakMap<AbortSignal, AbortListener>();

/**
 * The single listener that all waiters with the same signal share: Node.js warns of a leak when a signal has more than
 * ten listeners.
 */
export class AbortListener {
  private readonly callbacks = new Set<() => void>();

  static of(signal: AbortSignal): AbortListener {
    return listeners.get(signal) ?? new AbortListener(signal);
  }

  private constructor(private readonly signal: AbortSignal) {
    listeners.set(signal, this);
    signal.addEventListener('abort', this.fire, { once: true });
  }

  add(callback: () => void): void {
    this.callbacks.add(callback);
  }

  /** With the last callback the listener is gone too. */
  remove(callback: () => void): void {
    if (!this.callbacks.delete(callback) || this.callbacks.size > 0) return;
    listeners.delete(this.signal);
    this.signal.removeEventListener('abort', this.fire);
  }

  private readonly fire = (): void => {
    for (const callback of this.callbacks) callback();
  };
}
