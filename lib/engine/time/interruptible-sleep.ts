import type { Runtime } from '../../backends/runtime.js';

/** Sleeps one after another. Each can be ended early, and keeps the process alive. */
export class InterruptibleSleep {
  private end: () => void = () => {};

  constructor(private readonly runtime: Runtime) {}

  /** Settles after `delay` milliseconds, or when {@link wake} is called. */
  sleep(delay: number): Promise<void> {
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
