import { BackOff } from '../../backends/back-off.js';
import type { BackendError, LockBackend, OwnerRef, ReleaseReply } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import type { HeldLock, ReleaseOutcome } from './held-lock.js';
import { type LeaseClock, validity } from './lease-clock.js';

/** The first and the longest pause, in milliseconds. */
const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 500;

/** An owner that nobody uses any more, and that the backend may still know. */
export interface UnusedOwner extends OwnerRef {
  /** Milliseconds after which its lease has ended by itself. */
  readonly leaseTime: number;
  /** The backend's time after which its acquisition is not executed any more (see BackendError). */
  readonly validUntil?: number;
  /** It may also be among the waiters that the backend knows. */
  readonly waits?: boolean;
}

/** What is known of a request that may have taken something, or may still do so. */
export type RequestOutcome = Pick<BackendError, 'outcome' | 'validUntil'> & Partial<Pick<BackendError, 'spent'>>;

/** The owner of a lock that is not held any more. */
export function unusedOwner({ key, type, owner, leaseTime, lateCopiesUntil }: HeldLock): UnusedOwner {
  if (lateCopiesUntil === undefined) return { key, type, owner, leaseTime };
  // A late copy of the acquisition that finds the lock busy would join the waiters.
  return { key, type, owner, leaseTime, validUntil: lateCopiesUntil, waits: type === 'fair' || type === 'write' };
}

/** What a release achieved. A release that was executed, lost its answer and was sent again by the client finds nothing the second time. */
export function releaseOutcome(held: HeldLock, reply: ReleaseReply, clock: LeaseClock): ReleaseOutcome {
  const executedTwice = reply.resent && clock.age(held.confirmed) < validity(held.validFor);
  return reply.released || executedTwice ? 'released' : 'gone';
}

/**
 * Releases, in the background, what the backend may hold for owners that nobody uses: after acquisitions and releases whose answers were
 * lost. It repeats the release until the backend answers that the owner is not there, at a time after which nothing can arrive any more, or
 * until the lease has ended by itself.
 */
export class BackgroundReleases {
  private closed = false;

  constructor(
    private readonly backend: LockBackend,
    private readonly runtime: Runtime,
  ) {}

  release(owner: UnusedOwner): void {
    const { runtime } = this;
    const backOff = new BackOff(runtime, FIRST_PAUSE, LONGEST_PAUSE);
    runtime.detached(() => this.attempt(owner, runtime.monotonic() + owner.leaseTime, backOff));
  }

  /** A lock was released whose acquisition may arrive a second time. */
  followUp(held: HeldLock): void {
    if (held.lateCopiesUntil !== undefined) this.release(unusedOwner(held));
  }

  close(): void {
    this.closed = true;
  }

  private attempt(unused: UnusedOwner, until: number, backOff: BackOff): void {
    this.releaseOnce(unused).then(
      (reply) => {
        if (mayStillArrive(unused, reply)) this.attemptAfter(backOff.next(), unused, until, backOff);
      },
      () => {
        const pause = backOff.next();
        if (this.runtime.monotonic() + pause <= until) this.attemptAfter(pause, unused, until, backOff);
      },
    );
  }

  private async releaseOnce({ key, type, owner, waits }: UnusedOwner): Promise<ReleaseReply> {
    const reply = await this.backend.release({ key, type, owner });
    // The waiter after the lock: when nothing can arrive any more, it is removed once more.
    if (waits) await this.backend.removeWaiter({ key, type, owner });
    return reply;
  }

  private attemptAfter(pause: number, unused: UnusedOwner, until: number, backOff: BackOff): void {
    if (!this.closed) this.runtime.timer(pause, () => this.attempt(unused, until, backOff));
  }
}

/** Whether the request, or a second copy of it, may be executed after this answer and take the lock once more. */
function mayStillArrive({ validUntil }: UnusedOwner, { released, at }: ReleaseReply): boolean {
  if (validUntil === undefined) return false;
  return released || (at !== undefined && at <= validUntil);
}
