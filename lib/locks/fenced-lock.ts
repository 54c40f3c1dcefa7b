import type { LockEngine } from '../engine/lock-engine.js';
import { ReentrantLock } from './reentrant-lock.js';

/**
 * Redisson's RFencedLock: as {@link ReentrantLock}, and each acquisition gives a larger number than the one before, from a counter that
 * Java shares. Hand it to the resource, which refuses a lower one than it has seen: so a holder that was stopped for longer than
 * its lease does no harm when it wakes up. Re-entry has the token of what it re-enters.
 *
 * ```ts
 * await using lease = await lock.lock();
 * await bank.charge(42, { fencingToken: lease.fencingToken });
 * ```
 *
 * @see https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
 * @publicApi
 */
export class FencedLock extends ReentrantLock {
  /** @internal */
  constructor(engine: LockEngine, name: string) {
    super(engine, name, 'fenced');
  }

  /** The last token that was given to anybody, also when the lock is free; `null` when there is none. */
  async getToken(): Promise<number | null> {
    return (await this.engine.inspect(this.name)).token ?? null;
  }
}
