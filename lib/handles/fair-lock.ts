import type { LockEngine } from '../engine/lock-engine.js';
import { ReentrantLock } from './reentrant-lock.js';

/**
 * Redisson's RFairLock: a {@link ReentrantLock} that serves its callers in the order of their arrival, across all
 * processes. A waiter that dies blocks those behind it for at most the module's `waiterTimeout` (5 s). A call of
 * `tryLock()` without a wait time does not join the queue.
 *
 * It costs more than an unordered lock: every waiter has an entry in Redis, and no lock is handed off inside a process.
 *
 * @publicApi
 */
export class FairLock extends ReentrantLock {
  /** @internal */
  constructor(engine: LockEngine, name: string) {
    super(engine, name, 'fair');
  }
}
