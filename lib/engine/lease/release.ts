import { BackOff, FIRST_PAUSE } from '../../backends/back-off.js';
import type { LockBackend, OwnerRef, ReleaseReply } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import type { EngineContext } from '../engine-context.js';
import type { HeldLock, ReleaseOutcome } from './held-lock.js';
import { validity } from './lease-clock.js';
import { announceLost } from './lease-events.js';

/** The longest pause, in milliseconds. */
const LONGEST_PAUSE = 500;
/**
 * After this time and a commandTimeout, in milliseconds, no request is still on its way. The backend's clock alone
 * would claim that for as long as it was set back.
 */
const LONGEST_DOUBT = 60_000;

/**
 * Releases a held lock in the backend.
 *
 * @param answered called as soon as that is over; without a reply where there was none: the lock is released in the
 * background then
 */
export function releaseHeld(
  { backend, backgroundReleases, clock }: EngineContext,
  held: HeldLock,
  answered: (reply: ReleaseReply | undefined) => void,
): Promise<ReleaseOutcome> {
  return backend.release(held).then(
    (reply) => {
      backgroundReleases.followUp(held);
      answered(reply);
      // A release that was executed, lost its answer and was sent again by the client finds nothing the second time.
      const executedTwice = reply.resent && clock.age(held.confirmed) < validity(held.validFor);
      return reply.released || executedTwice ? 'released' : 'gone';
    },
    () => {
      backgroundReleases.release({ ...unusedOwner(held), leaseTime: held.validFor });
      answered(undefined);
      return 'unreachable';
    },
  );
}

/**
 * Reports a lost lock to the holders of its shares. If there is none, the lock is released, because the backend may
 * still have it.
 */
export function noteLoss(context: EngineContext, held: HeldLock): void {
  const [share] = held.shares;
  if (share === undefined) context.backgroundReleases.release(unusedOwner(held));
  else announceLost(context, held, held.lost as Error, share.terms);
}

/** An owner that nobody uses any more, and that the backend may still know. */
export interface UnusedOwner extends OwnerRef {
  /** Milliseconds after which its lease has certainly ended. */
  readonly leaseTime: number;
  /** The backend's time after which its acquisition is not executed any more (see BackendError). */
  readonly validUntil?: number;
  /** It may also be among the waiters that the backend knows. */
  readonly waits?: boolean;
}

/** The owner of a lock that is not held any more. */
export function unusedOwner({ key, type, owner, leaseTime, lateCopiesUntil }: HeldLock): UnusedOwner {
  if (lateCopiesUntil === undefined) return { key, type, owner, leaseTime };
  // A late copy of the acquisition that finds the lock busy would join the waiters.
  return { key, type, owner, leaseTime, validUntil: lateCopiesUntil, waits: type === 'fair' || type === 'write' };
}

/** One owner's release, with the limits of its repetitions on the monotonic clock. */
interface Work {
  readonly unused: UnusedOwner;
  /** Without an answer, repetitions end here: the lease has ended. */
  readonly leaseEnd: number;
  /** While the backend says that something may still arrive. */
  readonly doubtEnd: number;
  readonly backOff: BackOff;
}

/**
 * Releases, in the background, what the backend may hold for owners that nobody uses: after acquisitions and releases
 * whose answers were lost. It repeats the release until the backend answers that the owner is not there, at a time
 * after which nothing can arrive any more, or until the lease has ended by itself. It does not trust the backend's
 * clock for more than a minute.
 */
export class BackgroundReleases {
  private closed = false;

  constructor(
    private readonly backend: LockBackend,
    private readonly runtime: Runtime,
    private readonly commandTimeout: number,
  ) {}

  release(owner: UnusedOwner): void {
    const { runtime, commandTimeout } = this;
    const now = runtime.monotonic();
    const work: Work = {
      unused: owner,
      leaseEnd: now + owner.leaseTime,
      doubtEnd: now + commandTimeout + LONGEST_DOUBT,
      backOff: new BackOff(runtime, FIRST_PAUSE, LONGEST_PAUSE),
    };
    runtime.detached(() => this.attempt(work));
  }

  /** A lock was released whose acquisition may arrive a second time. */
  followUp(held: HeldLock): void {
    if (held.lateCopiesUntil !== undefined) this.release(unusedOwner(held));
  }

  close(): void {
    this.closed = true;
  }

  private attempt(work: Work): void {
    const { unused, leaseEnd, doubtEnd, backOff } = work;
    this.releaseOnce(unused).then(
      (reply) => {
        if (mayStillArrive(unused, reply)) this.attemptAfter(backOff.next(), work, doubtEnd);
      },
      () => this.attemptAfter(backOff.next(), work, leaseEnd),
    );
  }

  private async releaseOnce({ key, type, owner, waits }: UnusedOwner): Promise<ReleaseReply> {
    const reply = await this.backend.release({ key, type, owner });
    // The waiter after the lock: when nothing can arrive any more, it is removed once more.
    if (waits) await this.backend.removeWaiter({ key, type, owner });
    return reply;
  }

  private attemptAfter(pause: number, work: Work, until: number): void {
    const { runtime } = this;
    if (!this.closed && runtime.monotonic() + pause <= until) runtime.timer(pause, () => this.attempt(work));
  }
}

/** Whether the request, or a second copy of it, may be executed after this answer and take the lock once more. */
function mayStillArrive({ validUntil }: UnusedOwner, { released, at }: ReleaseReply): boolean {
  if (validUntil === undefined) return false;
  return released || (at !== undefined && at <= validUntil);
}
