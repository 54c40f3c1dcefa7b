import type { Runtime } from '../backends/runtime.js';
import type { Deadline } from './persevere.js';

/** Pauses between tries: each twice as long as the one before, up to a limit, and not in step with those of others. */
export class BackOff {
  private next: number;

  /** @param first milliseconds, and so is `longest` */
  constructor(
    private readonly runtime: Runtime,
    first: number,
    private readonly longest: number,
  ) {
    this.next = first;
  }

  /** Settles after the next pause; at the deadline, when that comes before. */
  pause({ left, signal }: Deadline): Promise<void> {
    const delay = Math.min(left, this.next * (0.5 + this.runtime.random() / 2));
    this.next = Math.min(this.longest, this.next * 2);
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const end = () => {
        timer.cancel();
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = this.runtime.timer(delay, end, 'keep-alive');
      signal.addEventListener('abort', end);
    });
  }
}
