import { deadlineTimer, type Runtime, type Timer } from '../backends/runtime.js';
import type { WaitTerms } from '../engine/waiting/caller.js';
import { InterruptibleSleep } from '../engine/waiting/interruptible-sleep.js';

/** The time that one call has for its attempts. */
export class Deadline {
  /** Aborts when no time is left, or when the caller's own signal aborts. */
  readonly signal: AbortSignal;
  private readonly controller = new AbortController();
  private readonly end: number;
  private readonly timer: Timer | undefined;

  constructor(
    private readonly runtime: Runtime,
    { waitTime, signal }: WaitTerms,
  ) {
    this.end = runtime.monotonic() + waitTime;
    this.signal = signal === undefined ? this.controller.signal : AbortSignal.any([this.controller.signal, signal]);
    if (waitTime > 0 && waitTime !== Number.POSITIVE_INFINITY)
      this.timer = deadlineTimer(runtime, waitTime, () => this.controller.abort(), 'keep-alive');
  }

  /** Milliseconds. */
  get remaining(): number {
    return Math.max(0, this.end - this.runtime.monotonic());
  }

  /** Whether the deadline itself has aborted the signal. */
  get passed(): boolean {
    return this.controller.signal.aborted;
  }

  cancel(): void {
    this.timer?.cancel();
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
}
