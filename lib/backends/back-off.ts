import type { Runtime } from './runtime.js';

/** The default first pause, and the default longest one, in milliseconds. */
export const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 1_000;

/**
 * Pauses between attempts: each twice as long as the previous one, up to a limit, with jitter so that callers do not
 * retry in step.
 */
export class BackOff {
  private pause: number;

  /**
   * @param first the longest first pause, in milliseconds
   * @param longest the longest pause of all
   */
  constructor(
    private readonly runtime: Runtime,
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

  /** Starts again with the first pause: an attempt was answered. */
  reset(): void {
    this.pause = this.first;
  }
}
