import type { Runtime, Timer } from '../../backends/runtime.js';
import { listOf } from '../collections/list-of.js';
import { ReschedulableTimer } from '../reschedulable-timer.js';
import { ClockJumps } from './clock-jumps.js';
import { EventLoopBlocks } from './event-loop-blocks.js';
import { type LeaseClock, type Moment, validity } from './lease-clock.js';
import type { Loss, LossReason } from './loss-reasons.js';

/** How often the clocks are compared and `onHeartbeat` is called while anything is held, in milliseconds. */
const HEARTBEAT = 1_000;
/**
 * How many renewals are started at most before the event loop gets a turn, and how many one request carries at most.
 */
const RENEWALS_PER_TURN = 512;
/**
 * The shortest and the longest pause after a failure, in milliseconds. In between, the pause is a twentieth of the
 * lease.
 */
const SHORTEST_PAUSE = 20;
const LONGEST_PAUSE = 1_000;
/** How many fixed and extended leases are confirmed at most after an outage. The others end by their timers. */
const MOST_LOOKUPS = 1_000;

const NO_EXTENSIONS: readonly number[] = [];
const NOTHING: readonly never[] = [];

/** A thing that the backend keeps for this process until its lease ends: a lock or a permit. */
export interface Renewable<Thing extends Renewable<Thing>> {
  /** The requested lease in milliseconds. Each renewal sets the same. */
  readonly leaseTime: number;
  /** Whether the user chose the lease, so that it is not renewed. */
  readonly fixed: boolean;
  /** The moment before the last confirmed command that set the lease was sent. */
  readonly confirmed: Moment;
  /** Milliseconds of lease from {@link confirmed} on. It differs from leaseTime after an extension. */
  readonly validFor: number;
  /** When the lease ends unless it is confirmed again, on the monotonic clock. */
  readonly leaseEnd: number;
  /** Set at most once. */
  readonly lost: Error | undefined;
  /** Records that the backend has set the lease to `leaseTime`, by a command that was sent after `sent`. */
  confirm(sent: Moment, leaseTime: number): void;

  /** The watchdog's list that contains this thing, and its neighbours there. */
  list: RenewalList<Thing> | undefined;
  earlier: Thing | undefined;
  later: Thing | undefined;
}

/** Renews things of one kind, and is notified of the results. */
export interface Renewer<Thing> {
  /** The things that can be renewed in one request with this one. They may include it. Without it, there are none. */
  together?(thing: Thing): Iterable<Thing>;

  /**
   * Sets the leases of these things to `leaseTime` from now on. Resolves to false for each thing that the backend does
   * not hold any more.
   *
   * @throws BackendError when the outcome is unknown
   */
  renew(things: readonly Thing[], leaseTime: number): Promise<readonly boolean[]>;

  /**
   * Like {@link renew}, for one thing. If it is there, everything is renewed this way, without lists: a process may
   * hold a hundred thousand locks.
   */
  renewAlone?(thing: Thing, leaseTime: number): Promise<boolean>;
  /** Called when a request of {@link renewAlone} was answered, or has failed. */
  answered?(thing: Thing, failed: boolean): void;

  /**
   * Milliseconds until the lease of a thing ends in the backend; −1: never; undefined: it is not held. Used only for
   * fixed leases.
   *
   * @throws BackendError
   */
  remaining?(thing: Thing): Promise<number | undefined>;

  renewed(thing: Thing): void;
  /** A renewal failed and will be retried; the lease lasts for another `remainingTime` milliseconds. */
  failed(thing: Thing, remainingTime: number, error: Error): void;
  lost(thing: Thing, loss: Loss): void;
  /** Writes to the log. */
  warn(message: string): void;
}

/**
 * Renews everything that this process holds once a third of its lease has passed. At its deadline, a thing is declared
 * lost, even if the backend does not answer. A service has one watchdog for its locks, and one for its permits.
 *
 * A thing is in one of these states. The first four states are lists, in the order in which the leases end:
 *
 *   resting   Its lease was confirmed less than a third of it ago. → due when that time is over (or nearly over, so
 *             that renewals travel together), and at the next heartbeat after the clocks of this machine diverged.
 *   due       It is renewed in this turn of the event loop or soon after. → renewing, with the others that share its
 *             request.
 *   renewing  A request is under way. → resting when confirmed, retrying when the
 *             request fails, lost when the backend does not hold it.
 *   retrying  The last request failed. → due after a pause. All that fail during that pause are retried together.
 *   timed     Its lease is fixed or extended, so it is out of order and has its own timer. → when the timer fires: lost
 *             (fixed), renewing (the extension has run out).
 *   lost      Its deadline has passed, or the backend does not hold it. The watchdog notifies the renewer and forgets
 *             the thing.
 *
 * `extend()` moves a thing from any state to `timed` or `resting`, and `drop()` removes it.
 *
 * One timer, the heartbeat, serves all lists. Every acquisition guards and drops its lock once. Both take constant time
 * and create no objects.
 */
export class Watchdog<Thing extends Renewable<Thing>> {
  private readonly resting = new RenewalList<Thing>();
  private readonly due = new RenewalList<Thing>();
  private readonly renewing = new RenewalList<Thing>();
  private readonly retrying = new RenewalList<Thing>();
  /** The timers of timed things. */
  private readonly timers = new Map<Thing, Timer>();
  /** The lease times of unanswered extensions. */
  private readonly extensions = new Map<Thing, readonly number[]>();
  private readonly heartbeat: ReschedulableTimer;
  /** Leases that were confirmed before a jump have to be confirmed again. */
  private readonly jumps: ClockJumps;
  private readonly blocks: EventLoopBlocks;
  /** When the retrying things are due, on the monotonic clock. */
  private retryAt = Number.POSITIVE_INFINITY;
  /** The last failure. */
  private failure: Error | undefined;
  private closed = false;

  /**
   * @param leaseTime the lease of everything that is renewed, in milliseconds
   * @param onHeartbeat called once a second, or more often, while anything is held
   */
  constructor(
    private readonly runtime: Runtime,
    private readonly clock: LeaseClock,
    private readonly renewer: Renewer<Thing>,
    readonly leaseTime: number,
    private readonly onHeartbeat: () => void,
  ) {
    this.heartbeat = new ReschedulableTimer(runtime, () => this.beat());
    this.jumps = new ClockJumps(clock);
    this.blocks = new EventLoopBlocks(leaseTime, (message) => renewer.warn(message));
  }

  /** Guards an acquired thing. @param now the current moment, to save reading the clocks again */
  guard(thing: Thing, now: Moment): void {
    if (thing.fixed) this.setTimer(thing);
    else this.listFor(thing).push(thing);
    // A slow acquisition may be due for renewal before the next heartbeat.
    if (this.heartbeat.isScheduled && now.monotonic - thing.confirmed.monotonic < this.leaseTime / 10) return;
    this.jumps.start(thing.confirmed);
    this.schedule();
  }

  /** Stops guarding a thing that is given back, or that may lapse. */
  drop(thing: Thing): void {
    thing.list?.remove(thing);
    if (this.timers.size > 0) this.clearTimer(thing);
  }

  /** Whether it was neither given back nor lost, as far as the watchdog knows. */
  guards(thing: Thing): boolean {
    return thing.list !== undefined || this.timers.has(thing);
  }

  /**
   * Whether a thing is held at this moment, by the clocks alone. Past its deadline it is declared lost, even if no
   * timer has fired yet. `unsure`: the clocks have diverged; {@link confirmNow} finds out.
   */
  judge(thing: Thing): 'held' | 'lost' | 'unsure' {
    if (thing.lost !== undefined) return 'lost';
    if (this.left(thing) > 0) return this.clock.diverged(thing.confirmed) ? 'unsure' : 'held';
    this.declareLost(thing, 'too-late');
    return 'lost';
  }

  /**
   * Why a thing was lost. Past its deadline by this process's clock, that comes before what the backend says: it no
   * longer exists *because* it was not renewed.
   */
  explain(thing: Thing, noticed: LossReason, error?: Error): Loss {
    const now = this.clock.now();
    this.noticeBlock(now);
    if (this.left(thing, now) > 0) return { reason: noticed, error };
    return this.blocks.explain(thing, noticed, error);
  }

  /** Notices that the heartbeat should have come long ago, even if its timer has not fired yet. */
  noticeBlock({ monotonic }: Moment): void {
    if (this.heartbeat.isScheduled) this.blocks.compare(this.heartbeat.at, monotonic);
  }

  /**
   * Asks the backend whether a thing is held: by a renewal, or for a fixed lease by asking for the remaining time. What is
   * left to lapse must not be renewed.
   *
   * @throws BackendError when there is no answer
   */
  async confirmNow(thing: Thing): Promise<void> {
    if (!this.guards(thing)) return;
    if (!thing.fixed) return this.set(thing, thing.validFor, 'gone-at-confirmation');
    const sent = this.clock.now();
    const remaining = await this.renewer.remaining?.(thing);
    if (thing.lost !== undefined || !this.guards(thing) || thing.confirmed.monotonic > sent.monotonic) return;
    if (remaining === undefined) return this.declareLost(thing, 'gone-at-lookup');
    // The monotonic clock may be too slow, but never too fast.
    const most = thing.validFor - (sent.monotonic - thing.confirmed.monotonic);
    this.confirm(thing, sent, remaining < 0 ? most : Math.min(remaining, most));
  }

  /**
   * Sets a lease. A renewed lease never becomes shorter than its renewals make it.
   *
   * @throws BackendError when there is no answer
   */
  extend(thing: Thing, duration: number): Promise<void> {
    return this.set(thing, thing.fixed ? duration : Math.max(duration, thing.leaseTime), 'gone-at-extension');
  }

  /** Renews at once a thing whose lease is unknown, and retries until that succeeds. */
  renewNow(thing: Thing): void {
    this.drop(thing);
    this.due.push(thing);
    this.heartbeat.bringForward(0);
  }

  /**
   * Confirms as soon as possible what was confirmed last by a request before this moment, on the monotonic clock: since
   * then, the backend was not there for a while, and may have lost its data. What gets no answer is held until its
   * deadline, as always.
   */
  confirmAll(before: number): void {
    if (this.closed || this.isEmpty) return;
    const isOld = ({ confirmed }: Thing) => confirmed.monotonic <= before;
    for (let { first } = this.resting; first !== undefined && isOld(first); first = this.resting.first) {
      this.resting.remove(first);
      this.due.push(first);
    }
    if (this.due.first !== undefined) this.heartbeat.bringForward(0);
    if (this.renewer.remaining === undefined) return;
    const timed = [...this.timers.keys()].filter(isOld);
    for (const thing of timed.slice(0, MOST_LOOKUPS)) this.lookUp(thing).catch(() => {});
  }

  /** Finds out whether a thing is gone. Its deadline stays as it is. @throws BackendError when there is no answer */
  private async lookUp(thing: Thing): Promise<void> {
    const sent = this.runtime.monotonic();
    const remaining = await this.renewer.remaining?.(thing);
    if (remaining !== undefined || thing.lost !== undefined || !this.guards(thing)) return;
    if (thing.confirmed.monotonic <= sent) this.declareLost(thing, 'gone-at-lookup');
  }

  /**
   * Stops the heartbeat now if nothing is guarded. Without this call the next heartbeat stops it, which is soon enough
   * after short-lived locks.
   */
  stopIfIdle(): void {
    if (!this.isEmpty) return;
    this.heartbeat.cancel();
    this.jumps.stop();
  }

  close(): void {
    this.closed = true;
    this.heartbeat.cancel();
    for (const timer of this.timers.values()) timer.cancel();
    this.timers.clear();
  }

  // ── Heartbeat ──────────────────────────────────────────────────────────────────────────────────────────────────────

  private beat(): void {
    if (!this.isEmpty) this.blocks.compare(this.heartbeat.at, this.runtime.monotonic());
    this.round();
  }

  private round(): void {
    if (this.closed) return;
    this.heartbeat.cancel();
    this.compareClocks();
    this.loseOverdue(this.renewing, 'unanswered');
    this.loseOverdue(this.retrying, 'failed');
    this.endPause();
    if (this.renewWhatIsDue()) return this.runtime.nextTurn(() => this.round());
    if (this.isEmpty) return this.stopIfIdle();
    if (!this.heartbeat.isScheduled) this.schedule();
    this.onHeartbeat();
  }

  private get isEmpty(): boolean {
    const first = this.resting.first ?? this.due.first ?? this.renewing.first ?? this.retrying.first;
    return first === undefined && this.timers.size === 0;
  }

  private schedule(): void {
    if (this.closed) return;
    const { first: resting } = this.resting;
    const { first: renewing } = this.renewing;
    const { first: retrying } = this.retrying;
    // At most a third of the lease, because a thing that is guarded later must not be due before the heartbeat.
    let delay = Math.min(HEARTBEAT, this.leaseTime / 3);
    if (resting !== undefined) delay = Math.min(delay, this.untilDue(resting));
    if (renewing !== undefined) delay = Math.min(delay, this.left(renewing));
    if (retrying !== undefined) delay = Math.min(delay, this.left(retrying), this.retryAt - this.runtime.monotonic());
    this.heartbeat.schedule(Math.max(1, delay)); // the shortest timer of Node.js
  }

  private compareClocks(): void {
    const { timersLag, diverged } = this.jumps.compare();
    if (timersLag) {
      for (const thing of [...this.timers.keys()]) {
        if (this.left(thing) <= 0) this.declareLost(thing, 'ended-unnoticed');
        else this.setTimer(thing);
      }
    }
    if (diverged) this.resting.moveTo(this.due);
  }

  private loseOverdue(list: RenewalList<Thing>, reason: LossReason): void {
    for (let thing = list.first; thing !== undefined && this.left(thing) <= 0; thing = list.first)
      this.declareLost(thing, reason, reason === 'failed' ? this.failure : undefined);
  }

  private endPause(): void {
    if (this.runtime.monotonic() < this.retryAt) return;
    this.retryAt = Number.POSITIVE_INFINITY;
    this.retrying.moveTo(this.due);
  }

  /** @returns whether more things are due than one turn takes */
  private renewWhatIsDue(): boolean {
    const now = this.clock.now();
    const third = this.leaseTime / 3;
    for (let started = 0; ; ) {
      const isFull = started >= RENEWALS_PER_TURN;
      // Things that are due soon are renewed early, so that renewals travel in few commands. A large number is spread
      // over several turns.
      const first = this.due.first ?? this.firstOlderThan(isFull ? third : third - this.leaseTime / 60, now);
      if (first === undefined) return false;
      if (isFull) return true;
      if (this.renewer.renewAlone !== undefined) {
        started++;
        if (this.take(first, now)) this.renewAlone(first, now);
        continue;
      }
      const batch = this.takeBatch(first, now);
      started += Math.max(1, batch.length);
      if (batch.length > 0) this.renew(batch, now);
    }
  }

  private firstOlderThan(age: number, now: Moment): Thing | undefined {
    const { first } = this.resting;
    return first !== undefined && this.clock.age(first.confirmed, now) >= age ? first : undefined;
  }

  /**
   * Takes a thing out of its list, with the others that one request can renew. Things whose deadline has passed are
   * declared lost.
   */
  private takeBatch(first: Thing, now: Moment): readonly Thing[] {
    const { list } = first;
    const others = this.renewer.together?.(first);
    const isInTime = this.take(first, now);
    if (others === undefined) return isInTime ? listOf(first) : NOTHING;
    // Recently confirmed things are left for a later request.
    const youngest = list === this.resting ? this.leaseTime / 6 : 0;
    const batch = isInTime ? [first] : [];
    for (const thing of others) {
      if (batch.length === RENEWALS_PER_TURN) break;
      if (thing.list !== list || this.clock.age(thing.confirmed, now) < youngest) continue;
      if (this.take(thing, now)) batch.push(thing);
    }
    return batch;
  }

  /** Takes a thing out of its list. Past its deadline it is declared lost, and the answer is false. */
  private take(thing: Thing, now: Moment): boolean {
    thing.list?.remove(thing);
    if (this.left(thing, now) > 0) return true;
    this.declareLost(thing, 'too-late');
    return false;
  }

  // ── Renewals ───────────────────────────────────────────────────────────────────────────────────────────────────────

  private renewAlone(thing: Thing, sent: Moment): void {
    const { renewer } = this;
    this.renewing.push(thing);
    if (this.renewing.first === thing) this.heartbeat.bringForward(this.left(thing, sent));
    renewer.renewAlone?.(thing, this.longestLease(thing, thing.leaseTime)).then(
      (isHeld) => {
        renewer.answered?.(thing, false);
        if (thing.list === this.renewing) this.renewed(thing, isHeld, sent);
      },
      (error: Error) => {
        renewer.answered?.(thing, true);
        this.failed(listOf(thing), error);
      },
    );
  }

  private renew(things: readonly Thing[], sent: Moment): void {
    let { leaseTime } = things[0];
    for (const thing of things) {
      this.renewing.push(thing);
      leaseTime = this.longestLease(thing, leaseTime);
      if (this.renewing.first === thing) this.heartbeat.bringForward(this.left(thing, sent));
    }
    this.renewer.renew(things, leaseTime).then(
      (areHeld) => {
        // Not entries(), which would create two objects for each of a hundred thousand leases.
        for (let index = 0; index < things.length; index++)
          if (things[index].list === this.renewing) this.renewed(things[index], areHeld[index], sent);
      },
      (error: Error) => this.failed(things, error),
    );
  }

  private renewed(thing: Thing, isHeld: boolean, sent: Moment): void {
    if (!isHeld) return this.declareLost(thing, 'gone');
    this.renewing.remove(thing);
    thing.confirm(sent, thing.leaseTime);
    this.rest(thing);
    this.renewer.renewed(thing);
  }

  private failed(things: readonly Thing[], error: Error): void {
    if (this.closed) return;
    this.failure = error;
    for (const thing of things) {
      if (thing.list !== this.renewing) continue;
      const left = this.left(thing);
      if (left <= 0) {
        this.declareLost(thing, 'failed', error);
        continue;
      }
      this.renewing.remove(thing);
      this.retrying.push(thing);
      this.renewer.failed(thing, Math.round(left), error);
    }
    if (this.retrying.first === undefined || this.retryAt !== Number.POSITIVE_INFINITY) return;
    const pause = Math.min(LONGEST_PAUSE, Math.max(SHORTEST_PAUSE, this.leaseTime / 20));
    const delay = pause * (0.5 + this.runtime.random());
    this.retryAt = this.runtime.monotonic() + delay;
    this.heartbeat.bringForward(delay);
  }

  /**
   * Puts a thing back into its list. After a late answer or timer it may be due before the next heartbeat, which is
   * then brought forward.
   */
  private rest(thing: Thing): void {
    const list = this.listFor(thing);
    list.push(thing);
    if (list.first === thing) this.heartbeat.bringForward(list === this.due ? 0 : this.untilDue(thing));
  }

  /** The list for a confirmed thing. It is due at once if the clocks have jumped since. */
  private listFor(thing: Thing): RenewalList<Thing> {
    return this.jumps.haveHappenedSince(thing.confirmed) ? this.due : this.resting;
  }

  private set(thing: Thing, leaseTime: number, reason: LossReason): Promise<void> {
    const sent = this.clock.now();
    // A command that shortens the lease may be executed long before its answer arrives, or without any answer.
    if (this.guards(thing) && validity(leaseTime) < this.left(thing)) this.confirm(thing, sent, leaseTime);
    this.extensions.set(thing, [...this.extensionsOf(thing), leaseTime]);
    const answer = this.renewer.renew([thing], leaseTime).finally(() => this.extensionAnswered(thing, leaseTime));
    return answer.then(([isHeld]) => {
      if (thing.lost !== undefined || !this.guards(thing)) return;
      if (!isHeld) this.declareLost(thing, reason);
      else if (this.extensionsOf(thing).every((other) => other >= leaseTime)) this.confirm(thing, sent, leaseTime);
    });
  }

  private confirm(thing: Thing, sent: Moment, leaseTime: number): void {
    this.drop(thing);
    thing.confirm(sent, leaseTime);
    if (thing.fixed || leaseTime > thing.leaseTime) this.setTimer(thing);
    else this.rest(thing);
  }

  /** A renewal that overtakes an extension must not cut the extension short. */
  private longestLease(thing: Thing, leaseTime: number): number {
    let longest = leaseTime;
    for (const extension of this.extensionsOf(thing)) longest = Math.max(longest, extension);
    return longest;
  }

  private extensionsOf(thing: Thing): readonly number[] {
    return this.extensions.size === 0 ? NO_EXTENSIONS : (this.extensions.get(thing) ?? NO_EXTENSIONS);
  }

  private extensionAnswered(thing: Thing, leaseTime: number): void {
    const extensions = this.extensionsOf(thing);
    const index = extensions.indexOf(leaseTime);
    const others = extensions.filter((_, i) => i !== index);
    if (others.length > 0) this.extensions.set(thing, others);
    else this.extensions.delete(thing);
  }

  // ── Things with a timer ────────────────────────────────────────────────────────────────────────────────────────────

  /** Sets a thing's timer: for the deadline of a fixed lease, or for the next renewal of an extended one. */
  private setTimer(thing: Thing): void {
    this.clearTimer(thing);
    const delay = this.left(thing) - (thing.fixed ? 0 : (thing.leaseTime * 2) / 3);
    const timer = this.runtime.timer(delay, () => {
      this.timers.delete(thing);
      this.timerFired(thing);
    });
    this.timers.set(thing, timer);
  }

  private timerFired(thing: Thing): void {
    if (this.left(thing) <= 0) this.declareLost(thing, 'ended');
    else if (thing.fixed) this.setTimer(thing);
    else this.renew([thing], this.clock.now());
  }

  private clearTimer(thing: Thing): void {
    this.timers.get(thing)?.cancel();
    this.timers.delete(thing);
  }

  // ── State of a thing ───────────────────────────────────────────────────────────────────────────────────────────────

  /** Milliseconds for which a thing is certainly held. */
  private left({ validFor, confirmed }: Thing, now?: Moment): number {
    return this.clock.left(confirmed, validFor, now);
  }

  /** Milliseconds until a resting thing is due. */
  private untilDue({ confirmed, leaseTime }: Thing): number {
    return leaseTime / 3 - this.clock.age(confirmed);
  }

  private declareLost(thing: Thing, reason: LossReason, error?: Error): void {
    this.drop(thing);
    this.renewer.lost(thing, this.explain(thing, reason, error));
  }
}

/** Things in the order in which their leases end unless confirmed again. A thing is in at most one list. */
export class RenewalList<Thing extends Renewable<Thing>> {
  first: Thing | undefined;
  private last: Thing | undefined;

  push(thing: Thing): void {
    // Answers arrive roughly in the order of the requests, and most leases have the same length. So the right position
    // is at or near the end.
    const { leaseEnd } = thing;
    let earlier = this.last;
    while (earlier !== undefined && earlier.leaseEnd > leaseEnd) earlier = earlier.earlier;
    const later = earlier === undefined ? this.first : earlier.later;
    thing.list = this;
    thing.earlier = earlier;
    thing.later = later;
    if (earlier === undefined) this.first = thing;
    else earlier.later = thing;
    if (later === undefined) this.last = thing;
    else later.earlier = thing;
  }

  remove(thing: Thing): void {
    if (thing.list !== this) return;
    if (thing.earlier === undefined) this.first = thing.later;
    else thing.earlier.later = thing.later;
    if (thing.later === undefined) this.last = thing.earlier;
    else thing.later.earlier = thing.earlier;
    thing.earlier = thing.later = thing.list = undefined;
  }

  moveTo(other: RenewalList<Thing>): void {
    for (let thing = this.first; thing !== undefined; thing = this.first) {
      this.remove(thing);
      other.push(thing);
    }
  }
}
