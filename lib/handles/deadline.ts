import type { Runtime } from '../backends/runtime.js';
import { InterruptibleSleep } from '../engine/waiting/interruptible-sleep.js';
import { Caller, type WaitTerms } from '../engine/waiting/waiter.js';

/** Never reported, because the error of a call that ran out of time depends on its attempts. */
const ENDED = new Error('the time of the call has ended');

/**
 * The time that one call has for its attempts. It ends with {@link cancel}, after its waitTime, or with the caller's
 * signal.
 */
export class Deadline extends Caller<void> {
  /** Whether the waitTime has ended. */
  passed = false;
  private readonly controller = new AbortController();

  constructor(
    name: string,
    private readonly clock: Runtime,
    terms: WaitTerms,
  ) {
    const ignore = () => {};
    super(name, terms, clock, ignore, ignore);
    if (terms.signal?.aborted) this.controller.abort(terms.signal.reason);
    else this.watch((reason) => this.end(reason === 'timeout'));
  }

  override get what(): string {
    return `the lock '${this.name}'`;
  }

  /** Aborts when no time is left, or when the caller's own signal aborts. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** The remaining time, in milliseconds. */
  get remaining(): number {
    return Math.max(0, this.remainingWait);
  }

  cancel(): void {
    this.grant();
  }

  /** Settles after `delay` milliseconds, or when the signal aborts. */
  async sleep(delay: number): Promise<void> {
    const { clock, signal, remaining } = this;
    if (signal.aborted) return;
    const sleep = new InterruptibleSleep(clock);
    const wake = () => sleep.wake();
    signal.addEventListener('abort', wake);
    await sleep.sleep(Math.min(remaining, delay));
    signal.removeEventListener('abort', wake);
  }

  private end(passed: boolean): Error {
    this.passed = passed;
    this.controller.abort(passed ? undefined : this.terms.signal?.reason);
    return ENDED;
  }
}
