import type { LockEngine } from '../engine/lock-engine.js';
import { ReentrantLock } from './reentrant-lock.js';

/**
 * Redisson's RFairLock: as {@link ReentrantLock}, and served in the order of arrival, over all processes. A waiter that dies holds up
 * those behind it for the module's `fairWaitTimeout` (5 s) at most. A try without a wait time does not queue.
 *
 * Every waiter has an entry in Redis, and nothing is handed on inside a process: it costs more than a lock without order.
 *
 * @publicApi
 */
export class FairLock extends ReentrantLock {
  /** @internal */
  constructor(engine: LockEngine, name: string) {
    super(engine, name, 'fair');
  }
}
