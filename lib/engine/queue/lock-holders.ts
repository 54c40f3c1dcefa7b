import type { LockType, ReleaseReply } from '../../backends/lock-backend.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import { announceLost } from '../lease/announce.js';
import { releaseOutcome, unusedOwner } from '../lease/background-releases.js';
import type { HeldLock, LockKeeper, ReleaseOutcome } from '../lease/held-lock.js';
import type { Moment } from '../lease/lease-clock.js';

/** What one process holds of one lock, and how it goes back to the backend. */
export abstract class LockHolders implements LockKeeper {
  /** Releases and transfers that were not answered yet. */
  protected departures = 0;

  protected constructor(
    protected readonly context: AcquisitionContext,
    readonly name: string,
    readonly key: string,
    readonly type: LockType,
  ) {}

  abstract get holders(): readonly HeldLock[];

  abstract giveBack(held: HeldLock, now?: Moment): ReleaseOutcome | Promise<ReleaseOutcome>;

  /** Goes on after something has ended. */
  abstract resume(): void;

  forget(held: HeldLock): void {
    this.drop(held);
    this.resume();
  }

  lost(held: HeldLock): void {
    const { backgroundReleases } = this.context;
    this.forget(held);
    if (held.shares.length === 0) backgroundReleases.release(unusedOwner(held));
    else announceLost(this.context, held, held.lost as Error, held.shares[0].terms);
  }

  /** @param now a moment that has just been read */
  hold(held: HeldLock, now: Moment): void {
    this.context.watchdog.guard(held, now);
  }

  drop(held: HeldLock): void {
    this.context.watchdog.drop(held);
  }

  /** Releases it in the backend. */
  release(held: HeldLock): Promise<ReleaseOutcome> {
    const { backend, backgroundReleases, clock } = this.context;
    this.drop(held);
    this.departures++;
    return backend.release(held).then(
      (reply) => {
        this.departures--;
        backgroundReleases.followUp(held);
        this.released(held, reply);
        this.resume();
        return releaseOutcome(held, reply, clock);
      },
      () => {
        this.departures--;
        this.released(held, undefined);
        return this.releaseInBackground(held);
      },
    );
  }

  /** The backend did not say whether the lock is free. */
  releaseInBackground(held: HeldLock): ReleaseOutcome {
    this.context.backgroundReleases.release({ ...unusedOwner(held), leaseTime: held.validFor });
    this.resume();
    return 'unreachable';
  }

  transferSent(): void {
    this.departures++;
  }

  transferSettled(): void {
    this.departures--;
  }

  /** A release was answered; without a `reply`: it failed. */
  protected released(_held: HeldLock, _reply: ReleaseReply | undefined): void {}
}
