import { randomUUID } from 'node:crypto';
import { LONGEST_TIMER, type Runtime, type Timer } from '../backends/runtime.js';
import { outsideLocks } from './scope/lock-scope.js';

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
    this.handle = setTimeout(callback, Math.min(Math.ceil(Math.max(delay, 0)), LONGEST_TIMER));
    if (!keepAlive) this.handle.unref();
  }

  cancel(): void {
    clearTimeout(this.handle);
  }
}
