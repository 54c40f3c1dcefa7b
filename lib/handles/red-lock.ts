import { acquireAllOrNone } from '../engine/several/all-or-none.js';
import type { MemberLease } from './combined-lease.js';
import { CombinedLock } from './combined-lock.js';
import type { LeaseRequest, LockHandle } from './lock-handle.js';
import { Majority } from './majority.js';

/**
 * Redisson's RRedLock: a lock that is held while a majority of its members is. The members are locks of independent
 * services, each with its own Redis. Members that are not acquired in time are left out, and are released again if they
 * are acquired later. (The module's option `quorum` does the same for all locks of a service, with one owner instead of
 * several.)
 *
 * ```ts
 * const lock = one.getRedLock(one.getLock('order'), two.getLock('order'), three.getLock('order'));
 * await using lease = await lock.tryLock('2s');
 * if (lease !== null) …
 * ```
 *
 * A call waits for one busy member at a time, for `waitTime` divided by the number of members (1.5 s without one).
 *
 * @see https://redis.io/docs/latest/develop/use/patterns/distributed-locks/
 * @publicApi
 */
export class RedLock extends CombinedLock {
  /** @internal */
  readonly needed: number;

  /** @internal */
  constructor(locks: readonly LockHandle[]) {
    super('getRedLock()', locks);
    this.needed = Math.floor(this.members.length / 2) + 1;
  }

  /** @internal */
  async acquireLease(request: LeaseRequest): Promise<MemberLease> {
    await this.started();
    const terms = this.waitTermsOf(request);
    const majority = new Majority(this, request, terms);
    const { runtime } = this.engines[0].settings;
    const [lease] = await acquireAllOrNone([majority], this.name, terms, this.fixedLeaseOf(request), runtime);
    return lease;
  }
}
