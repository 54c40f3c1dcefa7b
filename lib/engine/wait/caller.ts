import { deadlineTimer, type Runtime, type Timer } from '../../backends/runtime.js';
import { LockAbortedError } from '../errors.js';
import type { WaitTerms } from '../terms/wait-terms.js';

/** Why a caller left before it was served. */
export type LeaveReason = 'timeout' | 'abort';

/**
 * A waiting caller: its waitTime, its signal and its callbacks. It is settled once. After that it has no timer, no
 * listener and no position in a queue.
 */
export abstract class Caller<Granted> {
  settled = false;
  /** The caller runs in a lock scope. */
  scoped = false;
  /** Called when the caller is settled. Set only for a wait that was written to the journal: see WaitJournal. */
  onSettled: (() => void) | undefined;

  /** When the call was made, on the monotonic clock, if an outage was under way at that time; otherwise 0. */
  calledAt = 0;

  /**
   * When the caller arrived. Set only if its wait is limited, because reading the clock for every caller made hand-offs
   * about 10 % slower.
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

  /** What the caller waits for, as worded in error messages, for example `the lock 'order:1'`. */
  abstract get what(): string;

  /** The milliseconds that remain of the caller's waitTime. */
  get remainingWait(): number {
    return this.terms.waitTime - (this.runtime.monotonic() - this.since);
  }

  /** How many milliseconds the caller has waited; 0 if its wait is not limited. */
  get calledFor(): number {
    return this.timed ? this.runtime.monotonic() - this.since : 0;
  }

  /** Whether the caller may wait for another process although the service is about to close. */
  get keepsWaiting(): boolean {
    return this.scoped;
  }

  /** The caller makes one attempt and does not wait. */
  get triesOnce(): boolean {
    return this.terms.waitTime === 0;
  }

  /** The caller may leave before it is served. */
  get mayLeave(): boolean {
    return this.timed || this.terms.signal !== undefined;
  }

  private get timed(): boolean {
    return this.terms.waitTime > 0 && this.terms.waitTime !== Number.POSITIVE_INFINITY;
  }

  /**
   * Starts the timer and listens to the signal.
   *
   * @param leave removes the caller from its queue and returns why it was not served; called before the caller is
   *   refused
   */
  watch(leave: (reason: LeaveReason) => Error): void {
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

/** The error for a caller whose own signal has ended its wait. */
export function abortedError(
  { what, name }: Pick<Caller<never>, 'what' | 'name'>,
  signal: AbortSignal,
): LockAbortedError {
  return new LockAbortedError(`Waiting for ${what} was aborted by the caller's signal`, name, { cause: signal.reason });
}

const listeners = new WeakMap<AbortSignal, AbortListener>();

/**
 * One listener shared by all waiters with the same signal. Node.js warns of a leak when a signal has more than ten
 * listeners.
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

  /** Removes a callback. When none are left, it also removes the listener. */
  remove(callback: () => void): void {
    if (!this.callbacks.delete(callback) || this.callbacks.size > 0) return;
    listeners.delete(this.signal);
    this.signal.removeEventListener('abort', this.fire);
  }

  private readonly fire = (): void => {
    for (const callback of this.callbacks) callback();
  };
}
