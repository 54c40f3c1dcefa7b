import type { LockEngine } from '../engine/lock-engine.js';
import { ReentrantLock } from './reentrant-lock.js';

/**
 * Redisson's RFencedLock: a {@link ReentrantLock} whose fencing tokens come from a counter that it shares with Java, so
 * that they grow over both. Hand the token to the resource, which refuses one that is lower than the highest it has
 * seen: a holder that was paused for longer than its lease then does no harm when it wakes up. Re-entry has the token
 * of the lease that it shares.
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

  /**
   * The last token that any caller was given, also when the lock is free; `null` when there is none.
   *
   * @throws LockUnavailableError when the backend does not answer, LockKeyError for a bad name
   */
  async getToken(): Promise<number | null> {
    return (await this.engine.inspect(this.name)).token ?? null;
  }
}
