import type { Runtime } from '../backends/runtime.js';
import { LONGEST_HOLD, PassedOver, pauseAfterHold } from '../engine/several/passed-over.js';
import { toLeaseTime } from '../engine/terms/duration.js';
import { type MemberLease, releaseUnused } from './combined-lease.js';
import type { CombinedAcquisition } from './combined-lock.js';
import type { Deadline } from './deadline.js';
import type { LeaseRequest, LockHandle } from './lock-handle.js';

/** Locks that are acquired together: one, or several that one command can acquire. */
export type LockGroup = Pick<LockHandle, 'acquireLease'>;

/**
 * Acquires all members of a multi-lock, or none. It takes those that are free, one after the other. When one is busy, it gives back
 * what it took, and its next attempt waits for the busy one first.
 *
 * A caller that was passed over for long waits for one after the other in their order, and holds what it has meanwhile, for a second
 * at most. HoldAndWait does the same for the names of one service.
 */
export class AllOrNone implements CombinedAcquisition {
  /** The group that the previous attempt found busy. */
  private busy: LockGroup | undefined;
  private readonly passedOver: PassedOver;
  /** It has held locks in vain, and does not hold and wait again before this time. */
  private pausedUntil = 0;

  constructor(
    private readonly groups: readonly LockGroup[],
    private readonly request: Pick<LeaseRequest, 'leaseTime' | 'outageTimeout' | 'tentative'>,
    private readonly runtime: Runtime,
  ) {
    this.passedOver = new PassedOver(runtime);
  }

  async attempt(deadline: Deadline): Promise<readonly MemberLease[]> {
    const mayHoldAndWait = this.passedOver.forLong && this.runtime.monotonic() >= this.pausedUntil;
    this.passedOver.attemptFailed(); // counted before it has: one that succeeds is the last
    const taken = new Map<LockGroup, MemberLease>();
    if (mayHoldAndWait) await this.takeInOrder(taken, deadline);
    else await this.takeBusyFirst(taken, deadline);
    return [...taken.values()];
  }

  private async takeBusyFirst(taken: Map<LockGroup, MemberLease>, { remaining, signal }: Deadline): Promise<void> {
    const { groups, request, busy } = this;
    if (busy !== undefined) taken.set(busy, await busy.acquireLease({ ...request, waitTime: remaining, signal }));
    for (const group of groups) if (!taken.has(group)) await this.take(group, 0, taken, signal);
  }

  private async takeInOrder(taken: Map<LockGroup, MemberLease>, deadline: Deadline): Promise<void> {
    const { runtime, groups, longestHold } = this;
    let holdUntil = Number.POSITIVE_INFINITY;
    for (const group of groups) {
      const waitTime = Math.max(0, Math.min(deadline.remaining, holdUntil - runtime.monotonic()));
      await this.take(group, waitTime, taken, deadline.signal);
      if (taken.size === 1) holdUntil = runtime.monotonic() + longestHold;
    }
  }

  /** Takes one group; where it stays busy, gives back what was taken. */
  private async take(
    group: LockGroup,
    waitTime: number,
    taken: Map<LockGroup, MemberLease>,
    signal: AbortSignal,
  ): Promise<void> {
    const { runtime, request } = this;
    try {
      taken.set(group, await group.acquireLease({ ...request, waitTime, signal }));
    } catch (error) {
      await releaseUnused(taken.values());
      this.busy = group;
      this.pausedUntil = runtime.monotonic() + (waitTime > 0 ? pauseAfterHold(runtime, LONGEST_HOLD) : 0);
      throw error;
    }
  }

  /** Half of a fixed lease leaves time to renew it. */
  private get longestHold(): number {
    const { leaseTime } = this.request;
    const fixed = leaseTime === undefined ? Number.POSITIVE_INFINITY : toLeaseTime(leaseTime, 'lock(): leaseTime');
    return Math.min(LONGEST_HOLD, fixed / 2);
  }
}
