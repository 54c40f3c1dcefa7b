import { deadlineTimer, type Runtime, type Timer } from '../backends/runtime.js';
import type { WaitTerms } from '../engine/waiting/caller.js';
import { InterruptibleSleep } from '../engine/waiting/interruptible-sleep.js';
import { LinkedAbort } from './linked-abort.js';

/** The time that one call has for its attempts. */
export class Deadline {
  /** The deadline itself has aborted the signal. */
  passed = false;
  private readonly abort: LinkedAbort;
  private readonly end: number;
  private readonly timer: Timer | undefined;

  constructor(
    private readonly runtime: Runtime,
    { waitTime, signal }: WaitTerms,
  ) {
    this.end = runtime.monotonic() + waitTime;
    this.abort = new LinkedAbort(signal);
    if (waitTime > 0 && waitTime !== Number.POSITIVE_INFINITY)
      this.timer = deadlineTimer(runtime, waitTime, () => this.pass(), 'keep-alive');
  }

  /** Aborts when no time is left, or when the caller's own signal aborts. */
  get signal(): AbortSignal {
    return this.abort.signal;
  }

  /** Milliseconds. */
  get remaining(): number {
    return Math.max(0, this.end - this.runtime.monotonic());
  }

  cancel(): void {
    this.timer?.cancel();
    this.abort.unlink();
  }

  /** Settles after `delay` milliseconds, or when the signal aborts. */
  async sleep(delay: number): Promise<void> {
    const { runtime, signal, remaining } = this;
    if (signal.aborted) return;
    const sleep = new InterruptibleSleep(runtime);
    const wake = () => sleep.wake();
    signal.addEventListener('abort', wake);
    await sleep.sleep(Math.min(remaining, delay));
    signal.removeEventListener('abort', wake);
  }

  private pass(): void {
    this.passed = true;
    this.abort.abort();
  }
}
