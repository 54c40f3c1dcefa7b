import type { Runtime, Timer } from '../backends/runtime.js';
import { LockAbortedError } from './errors.js';
import type { HeldLock } from './held-lock.js';
import type { Moment } from './lease-clock.js';
import type { AcquisitionTerms } from './lock-options.js';

/** Why a waiter left before it was served. */
export type Departure = 'timeout' | 'abort' | 'refused';

/**
 * One caller that wants one lock: how long it waits, what ends its wait, and whom to tell. It is settled once; from then on
 * it has no timer, no listener and no place in a queue.
 */
export class Waiter<Granted = HeldLock> {
  /** Links of the queue that it stands in. */
  previous: Waiter | undefined;
  next: Waiter | undefined;

  /** When its acquisition that is under way was sent. */
  sent: Moment | undefined;
  /** An acquisition of it got no answer: Redis may hold the lock for its owner. */
  unsettled = false;
  /** A message for it came while its acquisition was under way. */
  woken = false;
  settled = false;
  /** Its caller runs in a lock scope, and may go on waiting during shutdown. */
  scoped = false;

  readonly since: number;
  private timer: Timer | undefined;
  private onAbort: (() => void) | undefined;

  constructor(
    readonly name: string,
    readonly key: string,
    readonly owner: string,
    readonly terms: AcquisitionTerms,
    private readonly runtime: Runtime,
    private readonly granted: (held: Granted) => void,
    private readonly refused: (error: Error) => void,
  ) {
    this.since = runtime.monotonic();
  }

  /** Milliseconds that it will still wait. */
  get patience(): number {
    return this.terms.waitTime - (this.runtime.monotonic() - this.since);
  }

  /** It is content with one attempt. */
  get triesOnce(): boolean {
    return this.terms.waitTime === 0;
  }

  /** Starts the clock. `leave` takes it out of its queue and says why it was not served; it is called before the caller hears of it. */
  watch(leave: (departure: Departure) => Error): void {
    const { waitTime, signal } = this.terms;
    if (signal !== undefined) {
      this.onAbort = () => {
        leave('abort');
        this.refuse(
          new LockAbortedError(`Waiting for the lock '${this.name}' was aborted by the caller's signal`, this.name, {
            cause: signal.reason,
          }),
        );
      };
      signal.addEventListener('abort', this.onAbort, { once: true });
    }
    if (waitTime > 0 && waitTime !== Number.POSITIVE_INFINITY) {
      this.timer = this.runtime.timer(waitTime, () => this.refuse(leave('timeout')), 'keep-alive');
    }
  }

  grant(held: Granted): void {
    if (this.settle()) this.granted(held);
  }

  refuse(error: Error): void {
    if (this.settle()) this.refused(error);
  }

  private settle(): boolean {
    if (this.settled) return false;
    this.settled = true;
    this.timer?.cancel();
    if (this.onAbort !== undefined) this.terms.signal?.removeEventListener('abort', this.onAbort);
    return true;
  }
}
