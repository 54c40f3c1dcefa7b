import { deadlineTimer, type Runtime, type Timer } from '../../backends/runtime.js';
import { LockAbortedError } from '../errors.js';
import type { Milliseconds } from '../terms/duration.js';
import { AbortListener } from './abort-listener.js';

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
 * A caller that waits: for how long, what ends its wait, and whom to tell. It is settled once; from then on it has no timer, no listener
 * and no position in a queue.
 */
export abstract class Caller<Granted> {
  settled = false;
  /** It runs in a lock scope, and may go on waiting during shutdown. */
  scoped = false;
  /** Called when it is settled. Only for a wait that has been written down: see WaitJournal. */
  onSettled: (() => void) | undefined;

  /** When it called, on the monotonic clock, where an outage was under way at that time; 0: before any outage that is. */
  calledAt = 0;

  /** When it arrived; only where its wait is limited, because reading the clock for every caller took a tenth of a hand-off's time. */
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

  /** It may end its wait by itself. */
  get mayLeave(): boolean {
    return this.timed || this.terms.signal !== undefined;
  }

  private get timed(): boolean {
    return this.terms.waitTime > 0 && this.terms.waitTime !== Number.POSITIVE_INFINITY;
  }

  /**
   * Starts the timer and listens to the signal.
   *
   * @param leave removes the caller from its queue and says why it was not served; it is called before the caller is told
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

/** The caller's own signal has ended its wait. */
export function abortedError(
  { what, name }: Pick<Caller<never>, 'what' | 'name'>,
  signal: AbortSignal,
): LockAbortedError {
  return new LockAbortedError(`Waiting for ${what} was aborted by the caller's signal`, name, { cause: signal.reason });
}
