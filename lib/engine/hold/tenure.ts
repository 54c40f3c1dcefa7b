import type { Busy, ReleaseReply } from '../../backends/lock-backend.js';
import { unusedOwner } from '../ask/unused-owner.js';
import { announceLost } from '../events/lease-events.js';
import { CHECKED, invariant } from '../invariants.js';
import type { Moment } from '../time/lease-clock.js';
import type { HeldLock, LockWaiter, ReleaseListener, ReleaseOutcome } from './held-lock.js';
import type { HoldServices } from './hold-services.js';
import { RecallableRelease } from './recallable-release.js';

const NONE: readonly never[] = [];

/** The services that are needed here. */
type TenureServices = Pick<
  HoldServices,
  'backend' | 'backgroundReleases' | 'clock' | 'events' | 'runtime' | 'unsettledReleases' | 'watchdog'
>;

/** The queue whose lock is held. */
interface QueueOfTenure {
  /**
   * Called when a release is answered.
   *
   * @param reply undefined if there was no answer; the lock is then released in the background
   */
  released(held: HeldLock, reply: ReleaseReply | undefined): void;
}

/**
 * One lock while this process holds it: its holders, and how they leave. Usually there is one holder. Only readers share
 * a lock, a writer that has taken the read lock as well, and the holders of permits.
 *
 * A holder is *dropped* when this process stops holding the lock for it: by a release or a transfer to another owner,
 * or because it is *forgotten* (left to lapse) or *lost*. A release, transfer or detachment is *departing* until it is
 * answered. Until then, the backend may still name the owner that has left.
 */
export class Tenure {
  private holder: HeldLock | undefined = undefined;
  /** In the order in which they got the lock. A set, because thousands of readers may hold it. */
  private others: Set<HeldLock> | undefined = undefined;
  /** The number of departures that are unanswered. */
  private departures = 0;
  /** The latest release, until it is answered or recalled. */
  private release: RecallableRelease | undefined = undefined;
  /** The latest release, also after it was recalled. */
  private latestRelease: RecallableRelease | undefined = undefined;

  constructor(
    private readonly services: TenureServices,
    private readonly queue: QueueOfTenure,
  ) {}

  get holders(): readonly HeldLock[] {
    if (this.holder === undefined) return NONE;
    return this.others === undefined ? this.holder.alone : [this.holder, ...this.others];
  }

  get isHeld(): boolean {
    return this.holder !== undefined;
  }

  /** How many owners of this process hold the lock. */
  get size(): number {
    return this.holder === undefined ? 0 : 1 + (this.others?.size ?? 0);
  }

  /** How many owners of this process hold the lock, as far as the backend has confirmed that others have left. */
  get mostHolders(): number {
    return this.size + this.departures;
  }

  /** How many owners of this process hold the lock together with this one, which may have been dropped. */
  sizeWith(held: HeldLock): number {
    return held === this.holder || this.others?.has(held) ? this.size : this.size + 1;
  }

  get isDeparting(): boolean {
    return this.departures > 0;
  }

  /** The owner whose release is unanswered, if nobody else holds the lock here. */
  get leaving(): string | undefined {
    return this.holder === undefined ? this.release?.owner : undefined;
  }

  /** The release under way, if it is the only departure and can still be recalled. */
  get recallable(): RecallableRelease | undefined {
    return this.departures === 1 && this.release?.recallable ? this.release : undefined;
  }

  hold(held: HeldLock, now: Moment): void {
    if (this.holder === undefined) this.holder = held;
    else {
      this.others ??= new Set();
      this.others.add(held);
    }
    if (CHECKED) this.check();
    this.services.watchdog.guard(held, now);
  }

  drop(held: HeldLock): void {
    this.services.watchdog.drop(held);
    const { others } = this;
    if (this.holder !== held) others?.delete(held);
    else if (others === undefined) this.holder = undefined;
    else {
      [this.holder] = others;
      others.delete(this.holder);
    }
    if (others?.size === 0) this.others = undefined;
    if (CHECKED) this.check();
  }

  /** Drops a lock that is left to lapse. */
  forget(held: HeldLock): void {
    held.downgrade?.abandon();
    this.drop(held);
  }

  /**
   * Reports a lost lock, which was forgotten before, to the holders of its shares. A lock without shares is released,
   * since the backend may still hold it.
   */
  reportLoss(held: HeldLock): void {
    const { services } = this;
    const [share] = held.shares;
    if (share === undefined) services.backgroundReleases.release(unusedOwner(held));
    else announceLost(services, held, held.lost as Error, share.terms);
  }

  /**
   * Gives back a lock that was forgotten, because it was lost or abandoned. It is released only in the backend.
   *
   * @returns undefined if it was not forgotten
   */
  giveBackForgotten(held: HeldLock): ReleaseOutcome | undefined {
    if (held.lost === undefined && held.abandoned === undefined) return undefined;
    this.services.watchdog.drop(held);
    this.services.backgroundReleases.release(unusedOwner(held));
    return held.lost === undefined ? 'released' : 'gone';
  }

  /** Records that an owner begins to leave. */
  beginDeparture(): void {
    this.departures++;
  }

  /** Records that the backend has answered a departure, or gave no answer. */
  endDeparture(): void {
    this.departures--;
    if (CHECKED) this.check();
  }

  /**
   * Whether a busy answer names an owner of this process whose release is unanswered. Such an answer does not count:
   * the waiter asks once more after that release, which departs until then. It does so only once.
   *
   * @param answered called when the release is answered
   */
  asksBehindRelease(waiter: LockWaiter, { holder }: Busy, answered: () => void): boolean {
    const settled = () => {
      this.endDeparture();
      answered();
    };
    if (waiter.askedAgain || !this.services.unsettledReleases.onAnswer(holder, settled)) return false;
    waiter.askedAgain = true;
    this.beginDeparture();
    return true;
  }

  /** Releases the lock in the backend. Returns as `LockKeeper.giveBack`. */
  giveBack(held: HeldLock, listener: ReleaseListener): Promise<void> | undefined {
    this.drop(held);
    this.beginDeparture();
    const { latestRelease } = this;
    if (latestRelease?.held === held && latestRelease.resumable) {
      this.release = latestRelease;
      return latestRelease.resume(listener);
    }
    const release = new RecallableRelease(this.services, held, this);
    this.latestRelease = this.release = release;
    return release.send(listener);
  }

  releaseAnswered(release: RecallableRelease, reply: ReleaseReply | undefined): void {
    this.endDeparture();
    if (this.release === release) this.release = undefined;
    this.queue.released(release.held, reply);
  }

  /** Withdraws a {@link recallable} release. Its lock has to be held again. */
  recall(release: RecallableRelease): void {
    release.recall();
    this.release = undefined;
    this.endDeparture();
  }

  private check(): void {
    invariant(this.departures >= 0, 'more departures were answered than begun');
    invariant(this.others === undefined || this.holder !== undefined, 'a lock has other holders but no first one');
    invariant(this.others?.size !== 0, 'a lock that one owner holds has an empty set of others');
  }
}
