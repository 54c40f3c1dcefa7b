import type { Runtime, Timer } from '../../backends/runtime.js';
import { ClockJumps } from '../time/clock-jumps.js';
import { type LeaseClock, type Moment, validity } from '../time/lease-clock.js';
import { ReschedulableTimer } from '../time/reschedulable-timer.js';
import { EventLoopBlocks } from './event-loop-blocks.js';
import { Extensions } from './extensions.js';
import type { Loss, LossReason } from './loss-reasons.js';
import { type Renewable, RenewalList } from './renewal-list.js';
import type { KeptLeases, Standby } from './standby.js';

/** How often the clocks are compared and `onHeartbeat` is called while anything is held, in milliseconds. */
const HEARTBEAT = 1_000;
/** How many renewals are started at most before the event loop gets a turn. */
const RENEWALS_PER_TURN = 512;
/**
 * The shortest and the longest pause after a failure, in milliseconds. In between, the pause is a twentieth of the
 * lease.
 */
const SHORTEST_PAUSE = 20;
const LONGEST_PAUSE = 1_000;
/** How many fixed and extended leases are confirmed at most after an outage. The others end by their timers. */
const MOST_LOOKUPS = 1_000;

/** Renews things of one kind, and is notified of the results. */
export interface Renewer<Thing> {
  /**
   * Sets the lease of a thing to `leaseTime` from now on. Resolves to false if the backend does not hold it any more.
   * Several that can share a request are sent together by the renewer.
   *
   * @throws BackendError when the outcome is unknown
   */
  renew(thing: Thing, leaseTime: number): Promise<boolean>;
  /** Called when a request of {@link renew} was answered, or has failed. */
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
  /** The event loop was blocked, and a standby has renewed these leases meanwhile. */
  kept?(blockedFor: number, kept: KeptLeases): void;
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
 *   due       It is renewed in this turn of the event loop or soon after. → renewing.
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
  private readonly extensions = new Extensions<Thing>();
  private readonly heartbeat: ReschedulableTimer;
  /** Leases that were confirmed before a jump have to be confirmed again. */
  private readonly jumps: ClockJumps;
  private readonly blocks: EventLoopBlocks;
  /** How much of what the standby has said is reflected in the order of the lists. */
  private changes = 0;
  /** When the retrying things are due, on the monotonic clock. */
  private retryAt = Number.POSITIVE_INFINITY;
  /** The last failure. */
  private failure: Error | undefined;
  private closed = false;

  /**
   * @param leaseTime the lease of everything that is renewed, in milliseconds
   * @param onHeartbeat called once a second, or more often, while anything is held
   * @param standby renews what this watchdog should have renewed while the event loop is blocked
   */
  constructor(
    private readonly runtime: Runtime,
    private readonly clock: LeaseClock,
    private readonly renewer: Renewer<Thing>,
    readonly leaseTime: number,
    private readonly onHeartbeat: () => void,
    private readonly standby?: Standby,
  ) {
    this.heartbeat = new ReschedulableTimer(runtime, () => this.beat());
    this.jumps = new ClockJumps(clock);
    this.blocks = new EventLoopBlocks(
      leaseTime,
      (message) => renewer.warn(message),
      standby,
      (blockedFor, kept) => renewer.kept?.(blockedFor, kept),
    );
  }

  /** Guards an acquired thing. @param now the current moment, to save reading the clocks again */
  guard(thing: Thing, now: Moment): void {
    if (thing.fixed) this.setTimer(thing);
    else {
      this.listFor(thing).push(thing);
      this.standby?.guard(thing, now);
    }
    // A slow acquisition may be due for renewal before the next heartbeat.
    if (this.heartbeat.isScheduled && now.monotonic - thing.confirmed.monotonic < this.leaseTime / 10) return;
    this.jumps.start(thing.confirmed);
    this.schedule();
  }

  /** Stops guarding a thing that is given back, or that may lapse. */
  drop(thing: Thing): void {
    this.standby?.drop(thing);
    this.unlist(thing);
  }

  private unlist(thing: Thing): void {
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
    if (this.standby?.foundGone(thing)) return { reason: 'gone' };
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
    this.unlist(thing);
    this.due.push(thing);
    this.heartbeat.bringForward(0);
  }

  /**
   * Renews a thing together with the one that is being renewed, although it need not be renewed yet.
   *
   * @returns false if it does not rest
   */
  renewEarly(thing: Thing): boolean {
    if (thing.list !== this.resting) return false;
    this.resting.remove(thing);
    this.due.push(thing);
    return true;
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
    this.catchUp();
    this.compareClocks();
    this.loseOverdue(this.renewing, 'unanswered');
    this.loseOverdue(this.retrying, 'failed');
    this.endPause();
    if (this.renewWhatIsDue()) return this.runtime.nextTurn(() => this.round());
    if (this.isEmpty) return this.stopIfIdle();
    if (!this.heartbeat.isScheduled) this.schedule();
    this.onHeartbeat();
  }

  /** After a block, everything is renewed: the standby has changed the order in which leases end. */
  private catchUp(): void {
    const { standby } = this;
    if (standby === undefined) return;
    standby.catchUpAll();
    if (standby.changes !== this.changes) this.resting.sortInto(this.due);
    this.changes = standby.changes;
    standby.beat(this.clock.now());
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
    if (this.due.first !== undefined) delay = 0;
    if (resting !== undefined) delay = Math.min(delay, this.untilDue(resting));
    if (renewing !== undefined) delay = Math.min(delay, this.left(renewing));
    if (retrying !== undefined) delay = Math.min(delay, this.left(retrying), this.retryAt - this.runtime.monotonic());
    const shortest = Math.max(1, delay); // the shortest timer of Node.js
    // What others wait for is never put off.
    if (this.heartbeat.isScheduled) this.heartbeat.bringForward(shortest);
    else this.heartbeat.schedule(shortest);
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
    for (let started = 0; ; started++) {
      const isFull = started >= RENEWALS_PER_TURN;
      // Things that are due soon are renewed early, so that renewals travel in few commands. A large number is spread
      // over several turns.
      const first = this.due.first ?? this.firstOlderThan(isFull ? third : third - this.leaseTime / 60, now);
      if (first === undefined) return false;
      if (isFull) return true;
      if (this.take(first, now)) this.renew(first, now);
    }
  }

  private firstOlderThan(age: number, now: Moment): Thing | undefined {
    const { first } = this.resting;
    return first !== undefined && this.clock.age(first.confirmed, now) >= age ? first : undefined;
  }

  /** Takes a thing out of its list. Past its deadline it is declared lost, and the answer is false. */
  private take(thing: Thing, now: Moment): boolean {
    thing.list?.remove(thing);
    if (this.left(thing, now) > 0) return true;
    this.declareLost(thing, 'too-late');
    return false;
  }

  // ── Renewals ───────────────────────────────────────────────────────────────────────────────────────────────────────

  private renew(thing: Thing, sent: Moment): void {
    const { renewer } = this;
    this.renewing.push(thing);
    if (this.renewing.first === thing) this.heartbeat.bringForward(this.left(thing, sent));
    renewer.renew(thing, this.extensions.longest(thing, thing.leaseTime)).then(
      (isHeld) => {
        renewer.answered?.(thing, false);
        if (thing.list === this.renewing) this.renewed(thing, isHeld, sent);
      },
      (error: Error) => {
        renewer.answered?.(thing, true);
        this.failed(thing, error);
      },
    );
  }

  private renewed(thing: Thing, isHeld: boolean, sent: Moment): void {
    if (!isHeld) return this.declareLost(thing, 'gone');
    this.renewing.remove(thing);
    // A standby may have renewed it by a later request.
    if (sent.monotonic >= thing.confirmed.monotonic) thing.confirm(sent, thing.leaseTime);
    this.standby?.confirmed(thing);
    this.rest(thing);
    this.renewer.renewed(thing);
  }

  private failed(thing: Thing, error: Error): void {
    if (this.closed) return;
    this.failure = error;
    if (thing.list === this.renewing) {
      const left = this.left(thing);
      if (left <= 0) this.declareLost(thing, 'failed', error);
      else {
        this.renewing.remove(thing);
        this.retrying.push(thing);
        this.renewer.failed(thing, Math.round(left), error);
      }
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
    const { extensions } = this;
    extensions.begin(thing, leaseTime);
    const answer = this.ask(thing, leaseTime).finally(() => extensions.end(thing, leaseTime));
    return answer.then((isHeld) => {
      if (thing.lost !== undefined || !this.guards(thing)) return;
      if (!isHeld) this.declareLost(thing, reason);
      else if (extensions.isShortest(thing, leaseTime)) this.confirm(thing, sent, leaseTime);
    });
  }

  private ask(thing: Thing, leaseTime: number): Promise<boolean> {
    const { renewer } = this;
    return renewer.renew(thing, leaseTime).then(
      (isHeld) => {
        renewer.answered?.(thing, false);
        return isHeld;
      },
      (error) => {
        renewer.answered?.(thing, true);
        throw error;
      },
    );
  }

  private confirm(thing: Thing, sent: Moment, leaseTime: number): void {
    this.unlist(thing);
    thing.confirm(sent, leaseTime);
    this.standby?.confirmed(thing);
    if (thing.fixed || leaseTime > thing.leaseTime) this.setTimer(thing);
    else this.rest(thing);
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
    else this.renew(thing, this.clock.now());
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
    const loss = this.explain(thing, reason, error);
    this.drop(thing);
    this.renewer.lost(thing, loss);
  }
}
