import type { Runtime } from './runtime.js';

/** The default first pause, and the default longest one, in milliseconds. */
export const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 1_000;

/**
 * Pauses between attempts. Each is twice as long as the previous one, up to a limit; jitter keeps callers from retrying
 * in step.
 */
export class BackOff {
  private pause: number;

  /**
   * @param first the longest first pause, in milliseconds
   * @param longest the limit for all pauses, in milliseconds
   */
  constructor(
    protected readonly runtime: Runtime,
    private readonly first = FIRST_PAUSE,
    private readonly longest = LONGEST_PAUSE,
  ) {
    this.pause = first;
  }

  /** Milliseconds to wait before the next attempt. */
  next(): number {
    const delay = this.pause * (0.5 + this.runtime.random() / 2);
    this.pause = Math.min(this.longest, this.pause * 2);
    return delay;
  }

  /** Starts again with the first pause, after an attempt was answered. */
  reset(): void {
    this.pause = this.first;
  }
}
