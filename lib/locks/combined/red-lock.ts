import { FOREVER } from '../../engine/terms/duration.js';
import type { WaitTerms } from '../../engine/waiting/caller.js';
import type { LeaseRequest, LockHandle } from '../lock-handle.js';
import { type CombinedAcquisition, CombinedLock } from './combined-lock.js';
import { MajorityAcquisition } from './majority-acquisition.js';

/** How long a member is waited for when there is no `waitTime` to divide, in milliseconds, as in Redisson. */
const MEMBER_WAIT_TIME = 1_500;

/**
 * Redisson's RRedLock: a lock that is held while a majority of its members is. The members are locks of independent services, each of
 * which has a Redis of its own. Members that are not acquired in time are not waited for, and are given back. (The module's option
 * `quorum` does the same for all locks of a service, with one owner instead of several.)
 *
 * ```ts
 * const lock = one.getRedLock(one.getLock('order'), two.getLock('order'), three.getLock('order'));
 * await using lease = await lock.tryLock('2s');
 * if (lease !== null) …
 * ```
 *
 * A busy member is waited for during `waitTime` divided by the number of members (1.5 s without one), then another one.
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
  protected acquisition({ waitTime }: WaitTerms, { leaseTime, ...request }: LeaseRequest): CombinedAcquisition {
    const { members, needed, name } = this;
    const { runtime } = this.engines[0].settings;
    const memberWaitTime = waitTime === FOREVER ? MEMBER_WAIT_TIME : Math.max(1, waitTime / members.length);
    // Where all members are needed, the wait for one of them can be part of a deadlock.
    const tentative = request.tentative === true || needed < members.length;
    return new MajorityAcquisition({ members, needed, name, leaseTime, memberWaitTime, tentative, runtime });
  }

  /** @internal */
  protected leasesNeeded(): number {
    return this.needed;
  }
}
