import type { Runtime, Timer } from '../../../lib/backends/runtime.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';

/** A timer within this time that does not keep the process alive may be the watchdog's next heartbeat. */
export const HEARTBEAT = 1_000;

/** The real runtime. Counts its pending timers. */
export class CountingRuntime implements Runtime {
  private readonly live = new Set<{ readonly heartbeat: boolean }>();
  /** How often a callback was scheduled for the next turn of the event loop. */
  turns = 0;

  monotonic = nodeRuntime.monotonic;
  wall = nodeRuntime.wall;
  random = nodeRuntime.random;
  uuid = nodeRuntime.uuid;
  detached = nodeRuntime.detached;

  get timers(): number {
    return this.live.size;
  }

  get heartbeats(): number {
    return [...this.live].filter(({ heartbeat }) => heartbeat).length;
  }

  timer(delay: number, callback: () => void, keepAlive?: 'keep-alive'): Timer {
    const entry = { heartbeat: keepAlive === undefined && delay <= HEARTBEAT };
    this.live.add(entry);
    const timer = nodeRuntime.timer(
      delay,
      () => {
        this.live.delete(entry);
        callback();
      },
      keepAlive,
    );
    return {
      cancel: () => {
        this.live.delete(entry);
        timer.cancel();
      },
    };
  }

  nextTurn(callback: () => void): void {
    this.turns++;
    nodeRuntime.nextTurn(callback);
  }
}
