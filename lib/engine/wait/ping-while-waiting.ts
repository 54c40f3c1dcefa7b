import type { LockBackend } from '../../backends/lock-backend.js';
import type { Runtime, Timer } from '../../backends/runtime.js';
import type { WaitingQueues } from './outage-limit.js';

/** How often a node on which callers wait is pinged, in milliseconds. */
const PING_INTERVAL = 3_000;

/** Callers that may rest until there is news of what they wait for. */
export interface RestingCallers {
  /** Whether they rest. Set only by {@link PingWhileWaiting}. */
  resting: boolean;
}

/**
 * Pings the nodes on which callers of one service wait, so that an outage is noticed even while no caller asks. Each
 * node gets one ping, however many callers wait.
 */
export class PingWhileWaiting {
  /** The number of queues whose callers rest. */
  private resting = 0;
  private timer: Timer | undefined;
  private closed = false;

  constructor(
    private readonly backend: LockBackend,
    private readonly runtime: Runtime,
    private readonly queues: WaitingQueues,
  ) {}

  /** Records that these callers rest until {@link unrest} is called. */
  rest(callers: RestingCallers): void {
    if (callers.resting) return;
    callers.resting = true;
    this.resting++;
    this.schedule();
  }

  /** Records that these callers no longer rest. */
  unrest(callers: RestingCallers): void {
    if (!callers.resting) return;
    callers.resting = false;
    this.resting--;
    if (this.resting > 0) return;
    this.timer?.cancel();
    this.timer = undefined;
  }

  close(): void {
    this.closed = true;
    this.timer?.cancel();
  }

  private schedule(): void {
    const { health } = this.backend;
    if (health === undefined || this.closed) return;
    this.timer ??= this.runtime.timer(PING_INTERVAL, () => {
      this.timer = undefined;
      const keys = new Set<string>();
      this.queues.forEach((queue) => {
        for (const key of queue.keys) keys.add(key);
      });
      if (keys.size > 0) health.ping(keys);
      // A ping may have ended the waiting.
      if (this.resting > 0) this.schedule();
    });
  }
}
