import type { LockEngine } from '../engine/lock-engine.js';
import { ReentrantLock } from './reentrant-lock.js';

/**
 * Redisson's RFencedLock: a {@link ReentrantLock} whose fencing tokens come from a counter shared with Java, so that
 * they grow across both. Pass the token to the protected resource, which should reject a token lower than the highest
 * it has seen. A holder that was paused for longer than its lease then does no harm when it wakes up. A re-entry has
 * the token of the lease that it shares.
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
   * The last token given to any caller, even if the lock is free now; `null` when there is none.
   *
   * @throws LockUnavailableError when the backend does not answer, LockKeyError for an invalid name
   */
  async getToken(): Promise<number | null> {
    return (await this.engine.inspector.inspect(this.name)).token ?? null;
  }
}
