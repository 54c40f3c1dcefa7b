import type { Duration } from '../engine/duration.js';
import type { LockEngine } from '../engine/lock-engine.js';
import { refusal } from './lock-handle.js';
import type { LockHold } from './lock-hold.js';
import { ReentrantLock } from './reentrant-lock.js';

/**
 * Redisson's RFencedLock: as {@link ReentrantLock}, and each acquisition gives a larger number than the one before, from a counter that
 * Java shares. Hand it to the resource, which refuses a lower one than it has seen: so a holder that was stopped for longer than
 * its lease does no harm when it wakes up. Re-entry has the token of what it re-enters.
 *
 * ```ts
 * const token = await lock.lockAndGetToken();
 * await bank.charge(42, { fencingToken: token });
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

  /** As {@link lock}. @returns the fencing token */
  lockAndGetToken(leaseTime?: Duration): Promise<number> {
    return this.enter({ leaseTime }).then(tokenOf);
  }

  /** As {@link tryLock}. @returns the fencing token; `null` when the lock stayed busy */
  tryLockAndGetToken(waitTime: Duration = 0, leaseTime?: Duration): Promise<number | null> {
    return this.enter({ waitTime, leaseTime }).then(tokenOf, refusal(null));
  }

  /** The last token that was given to anybody, also when the lock is free; `null` when there is none. */
  async getToken(): Promise<number | null> {
    return (await this.engine.inspect(this.name)).token ?? null;
  }
}

function tokenOf({ leases: [lease] }: LockHold): number {
  return lease.fencingToken;
}
