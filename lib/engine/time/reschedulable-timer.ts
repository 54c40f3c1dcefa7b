import type { Runtime, Timer } from '../../backends/runtime.js';

/** A single timer that can be brought forward. */
export class ReschedulableTimer {
  private timer: Timer | undefined;
  /** When the timer fires, or was due to fire last, on the monotonic clock. */
  at = 0;

  constructor(
    private readonly runtime: Runtime,
    private readonly fire: () => void,
  ) {}

  get isScheduled(): boolean {
    return this.timer !== undefined;
  }

  /** Fires once after `delay` milliseconds, instead of at the previously scheduled time. */
  schedule(delay: number): void {
    this.timer?.cancel();
    this.at = this.runtime.monotonic() + delay;
    this.timer = this.runtime.timer(delay, () => {
      this.timer = undefined;
      this.fire();
    });
  }

  /** Fires after `delay` milliseconds at the latest, if the timer is scheduled. */
  bringForward(delay: number): void {
    if (this.timer !== undefined && this.runtime.monotonic() + delay < this.at) this.schedule(delay);
  }

  cancel(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }
}
