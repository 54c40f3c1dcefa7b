import type { Runtime } from '../../backends/runtime.js';

/** Sleeps one after the other, each of which can be ended early. A sleep keeps the process alive. */
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
