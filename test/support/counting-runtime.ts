import type { Runtime, Timer } from '../../lib/backends/runtime.js';
import { nodeRuntime } from '../../lib/engine/node-runtime.js';

/** The real runtime, and how many of its timers are under way. */
export class CountingRuntime implements Runtime {
  private readonly live = new Set<object>();
  /** How often the event loop was asked to go round. */
  turns = 0;

  monotonic = nodeRuntime.monotonic;
  wall = nodeRuntime.wall;
  random = nodeRuntime.random;
  uuid = nodeRuntime.uuid;
  detached = nodeRuntime.detached;

  get timers(): number {
    return this.live.size;
  }

  timer(delay: number, callback: () => void, keepAlive?: 'keep-alive'): Timer {
    const entry = {};
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
