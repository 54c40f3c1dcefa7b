import { BackOff } from '../../backends/back-off.js';

/**
 * The pauses of a loop that asks until it gets what it wants. Each is longer than the previous one, can be ended early,
 * and keeps the process alive.
 */
export class RetryPause extends BackOff {
  private end: () => void = () => {};

  /**
   * Settles after `delay` milliseconds, or when {@link wake} is called.
   *
   * @param delay left out: those of the next pause
   */
  sleep(delay = this.next()): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.runtime.timer(delay, resolve, 'keep-alive');
      this.end = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  /** Ends the current sleep. */
  wake(): void {
    this.end();
  }
}
