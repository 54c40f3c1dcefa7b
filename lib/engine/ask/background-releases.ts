import { BackOff, FIRST_PAUSE } from '../../backends/back-off.js';
import type { BackendError, LockBackend, ReleaseReply } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import type { UnreleasedLocks } from './unreleased-locks.js';
import type { Departing, UnsettledReleases } from './unsettled-releases.js';
import { type FormerOwner, type UnusedOwner, unusedOwner } from './unused-owner.js';

/** The longest pause between two releases, in milliseconds. */
const LONGEST_PAUSE = 500;
/**
 * No command is under way for longer than this time plus a commandTimeout, in milliseconds. Without this limit, a
 * backend whose clock was set back would report late copies as possible until its clock has caught up.
 */
const LONGEST_DOUBT = 60_000;

/** The release of one owner, with the limits for its repetitions on the monotonic clock. */
class Work implements Departing {
  previous: Departing | undefined;
  next: Departing | undefined;
  underWay = false;
  isRepeated = false;
  whenAnswered: readonly (() => void)[] | undefined;

  /**
   * @param leaseEnd the time at which the lease has ended even if there is no answer
   * @param doubtEnd the time after which the backend is no longer believed when it reports that a copy may still arrive
   */
  constructor(
    readonly unused: UnusedOwner,
    readonly leaseEnd: number,
    readonly doubtEnd: number,
    readonly backOff: BackOff,
  ) {}

  get key(): string {
    return this.unused.key;
  }

  get owner(): string {
    return this.unused.owner;
  }
}

/**
 * Releases unused owners in the background, after acquisitions and releases whose answers were lost. It repeats the
 * release until the backend reports, at a time after which no copy can arrive any more, that the owner is not there, or
 * until the lease has ended. It does not trust the backend's clock for more than a minute.
 */
export class BackgroundReleases {
  private closed = false;

  /**
   * @param placeLasts milliseconds after which a place in line that nobody refreshes has certainly lapsed, and the lease
   *   has ended with which it may have been granted the lock
   */
  constructor(
    private readonly backend: LockBackend,
    private readonly runtime: Runtime,
    private readonly commandTimeout: number,
    private readonly unsettled: UnsettledReleases,
    private readonly unreleased: UnreleasedLocks,
    private readonly placeLasts: number,
  ) {}

  release(owner: UnusedOwner): void {
    const { runtime, commandTimeout } = this;
    const now = runtime.monotonic();
    const backOff = new BackOff(runtime, FIRST_PAUSE, LONGEST_PAUSE);
    const leaseEnd = now + owner.leaseTime + (owner.waits ? this.placeLasts : 0);
    const work = new Work(owner, leaseEnd, now + commandTimeout + LONGEST_DOUBT, backOff);
    this.unsettled.begin(work);
    runtime.detached(() => this.attempt(work));
  }

  /** Releases the owner of a released lock once more if a copy of its acquisition may still arrive. */
  followUp(held: FormerOwner): void {
    if (held.lateCopiesUntil !== undefined) this.release(unusedOwner(held));
  }

  close(): void {
    this.closed = true;
    this.unreleased.close();
  }

  private attempt(work: Work): void {
    const { unused, leaseEnd, doubtEnd, backOff } = work;
    work.underWay = true;
    this.releaseOnce(unused).then(
      (reply) => {
        if (mayStillArrive(unused, reply)) this.attemptAfter(backOff.next(), work, doubtEnd);
        else this.unsettled.end(work);
      },
      (error: BackendError) => {
        if (unused.name !== undefined && !work.isRepeated) this.unreleased.add(unused.name, error);
        work.isRepeated = true;
        this.attemptAfter(backOff.next(), work, leaseEnd);
      },
    );
  }

  private async releaseOnce({ key, type, owner, leaseTime, waits, flight }: UnusedOwner): Promise<ReleaseReply> {
    if (flight !== undefined) await this.backend.flights?.release(flight);
    const reply = await this.backend.release({ key, type, owner, leaseTime });
    // The lock is released before the waiter is removed. Once no copy can arrive any more, the last repetition removes
    // both.
    if (waits) await this.backend.removeWaiter({ key, type, owner });
    return reply;
  }

  private attemptAfter(pause: number, work: Work, until: number): void {
    const { runtime, unsettled } = this;
    work.underWay = false;
    if (this.closed || runtime.monotonic() + pause > until) return unsettled.end(work);
    unsettled.answered(work);
    runtime.timer(pause, () => this.attempt(work));
  }
}

/** Whether the request, or a second copy of it, may be executed after this answer and take the lock once more. */
function mayStillArrive({ validUntil }: UnusedOwner, { released, at }: ReleaseReply): boolean {
  if (validUntil === undefined) return false;
  return released || (at !== undefined && at <= validUntil);
}
