import type { Runtime } from './runtime.js';

/** Pauses between attempts: each twice as long as the previous one, up to a limit, with jitter so that callers do not retry in step. */
export class BackOff {
  private pause: number;

  /**
   * @param first the longest first pause, in milliseconds
   * @param longest the longest pause of all, in milliseconds
   */
  constructor(
    private readonly runtime: Runtime,
    private readonly first: number,
    private readonly longest: number,
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
