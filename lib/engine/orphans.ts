import type { Holding, LockBackend } from '../backends/lock-backend.js';
import type { Runtime } from '../backends/runtime.js';

const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 2_000;

/**
 * Gives back, in the background, what the backend may hold for owners that nobody uses: acquisitions and releases whose answer
 * was lost. It tries until the backend answers or the lease has ended by itself.
 */
export class Orphans {
  private closed = false;

  constructor(
    private readonly backend: LockBackend,
    private readonly runtime: Runtime,
  ) {}

  giveBack(holding: Holding, leaseTime: number): void {
    const { key, type, owner } = holding;
    this.attempt({ key, type, owner }, this.runtime.monotonic() + leaseTime, FIRST_PAUSE);
  }

  close(): void {
    this.closed = true;
  }

  private attempt(holding: Holding, until: number, pause: number): void {
    this.backend.release(holding).catch(() => {
      if (this.closed || this.runtime.monotonic() + pause > until) return;
      this.runtime.timer(pause, () => this.attempt(holding, until, Math.min(pause * 2, LONGEST_PAUSE)));
    });
  }
}
