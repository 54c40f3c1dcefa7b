import { randomUUID } from 'node:crypto';
import type { Runtime, Timer } from '../backends/runtime.js';
import { outsideLocks } from './scope/lock-scope.js';

/** With a longer delay, setTimeout would fire at once. */
const LONGEST_DELAY = 2 ** 31 - 1;

/** The {@link Runtime} of a real Node.js process. @publicApi */
export const nodeRuntime: Runtime = {
  monotonic: () => performance.now(),
  wall: () => Date.now(),
  random: () => Math.random(),
  uuid: () => randomUUID(),
  detached: outsideLocks,
  timer: (delay, callback, keepAlive) =>
    nodeRuntime.detached(() => new NodeTimer(delay, callback, keepAlive === 'keep-alive')),
  nextTurn: (callback) => nodeRuntime.detached(() => void setImmediate(callback)),
};

class NodeTimer implements Timer {
  private readonly handle: NodeJS.Timeout;

  constructor(delay: number, callback: () => void, keepAlive: boolean) {
    this.handle = setTimeout(callback, Math.min(Math.ceil(Math.max(delay, 0)), LONGEST_DELAY));
    if (!keepAlive) this.handle.unref();
  }

  cancel(): void {
    clearTimeout(this.handle);
  }
}
