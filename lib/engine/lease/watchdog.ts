import type { LockBackend } from '../../backends/lock-backend.js';
import type { Runtime, Timer } from '../../backends/runtime.js';
import { LockLostError } from '../errors.js';
import type { EventHub } from '../events.js';
import type { HeldLock } from './held-lock.js';
import { type LeaseClock, type Moment, validity } from './lease-clock.js';
import { RenewalList } from './renewal-list.js';

/** How often the clocks are compared while anything is held. */
const HEARTBEAT = 1_000;
/** So many renewals are started before the event loop goes round. */
const RENEWALS_PER_TURN = 512;

/**
 * Renews every held lease without a fixed time at a third of its leaseTime, and declares any lease lost at its deadline,
 * whatever the backend does. One timer serves all: leases stand in the order of their deadlines, and those that rest have one length, so
 * that it is the order in which they are to be renewed too. Fixed leases, and extended ones that rest, have a timer of their own.
 */
export class Watchdog {
  private readonly resting = new RenewalList();
  private readonly renewing = new RenewalList();
  private readonly timers = new Map<HeldLock, Timer>();
  private beat: Timer | undefined;
  /** When it comes, on the monotonic clock. */
  private beatAt = 0;
  private lastBeat: Moment | undefined;
  private failing = false;

  constructor(
    private readonly backend: LockBackend,
    private readonly runtime: Runtime,
    private readonly clock: LeaseClock,
    private readonly events: EventHub,
    private readonly leaseTime: number,
  ) {}

  /** @param now a moment that has just been read */
  guard(held: HeldLock, now: Moment): void {
    if (held.fixed) this.alarm(held);
    else this.resting.push(held);
    // What was long under way may fall due before the next beat.
    if (this.beat !== undefined && now.monotonic - held.confirmed.monotonic < this.leaseTime / 10) return;
    this.beat?.cancel();
    this.lastBeat ??= now;
    this.schedule();
  }

  /**
   * Whether the lease is held at this moment, by the clocks alone. What is past its deadline is declared lost, though its timer has not
   * fired yet; `unsure`: the clocks have parted, and {@link confirmNow} may tell.
   */
  judge(held: HeldLock): 'held' | 'lost' | 'unsure' {
    if (held.lost !== undefined) return 'lost';
    if (!this.overdue(held)) return this.clock.diverged(held.confirmed) ? 'unsure' : 'held';
    this.lose(held, 'its lease ended before this process looked at it again (was the event loop blocked?)');
    return 'lost';
  }

  /**
   * Asks the backend about a lease: by a renewal; where it is fixed, for what remains of it.
   *
   * @throws BackendError when it gives no answer
   */
  async confirmNow(held: HeldLock): Promise<void> {
    if (!held.fixed) return this.set(held, held.validFor, 'confirmed');
    const sent = this.clock.now();
    const { owners } = await this.backend.inspect(held.key);
    if (held.lost !== undefined || !this.guards(held) || held.confirmed.monotonic > sent.monotonic) return;
    const own = owners.find(({ owner }) => owner === held.owner);
    if (own === undefined) return this.lose(held, 'it was not there any more when it was looked for');
    // The monotonic clock is at most too slow.
    const most = held.validFor - (sent.monotonic - held.confirmed.monotonic);
    this.confirm(held, sent, own.remaining < 0 ? most : Math.min(own.remaining, most));
  }

  /** Looks after it no more. */
  drop(held: HeldLock): void {
    held.list?.remove(held);
    if (this.timers.size === 0) return;
    this.timers.get(held)?.cancel();
    this.timers.delete(held);
  }

  /** Sets the lease of a guarded lock anew; for a lock of the watchdog, never to less than it has anyway. */
  extend(held: HeldLock, duration: number): Promise<void> {
    return this.set(held, held.fixed ? duration : Math.max(duration, held.leaseTime), 'extended');
  }

  close(): void {
    this.beat?.cancel();
    this.beat = undefined;
    for (const timer of this.timers.values()) timer.cancel();
    this.timers.clear();
  }

  private async set(held: HeldLock, leaseTime: number, what: 'extended' | 'confirmed'): Promise<void> {
    const { key, type, owner } = held;
    const sent = this.clock.now();
    // What makes a lease shorter may be executed long before its answer comes, or without one.
    if (this.guards(held) && validity(leaseTime) < this.left(held)) this.confirm(held, sent, leaseTime);
    held.unsettled++;
    held.extensions = [...held.extensions, leaseTime];
    const answer = this.backend.renew({ key, type, owner, leaseTime }).finally(() => {
      held.unsettled--;
      held.extensions = held.extensions.filter((_, i, all) => i !== all.indexOf(leaseTime));
    });
    const there = await answer;
    if (held.lost !== undefined || !this.guards(held)) return;
    if (!there) this.lose(held, `it was not there any more when it was to be ${what}`);
    else if (!held.extensions.some((underWay) => underWay < leaseTime)) this.confirm(held, sent, leaseTime);
  }

  private confirm(held: HeldLock, sent: Moment, leaseTime: number): void {
    this.drop(held);
    held.confirmed = sent;
    held.validFor = leaseTime;
    if (held.fixed || leaseTime > held.leaseTime) this.alarm(held);
    else this.rest(held);
  }

  private rest(held: HeldLock): void {
    this.resting.push(held);
    this.comeWithin(held.leaseTime / 3 - this.clock.age(held.confirmed));
  }

  /** The next beat, unless it is to come sooner anyway: late answers, and timers that rang late, leave less time than it counts on. */
  private comeWithin(delay: number): void {
    if (this.beat === undefined || this.runtime.monotonic() + delay >= this.beatAt) return;
    this.beat.cancel();
    this.setBeat(delay);
  }

  private guards(held: HeldLock): boolean {
    return held.list !== undefined || this.timers.has(held);
  }

  /** Wakes up for one lock alone: at the deadline of a fixed lease, when an extended one has to be renewed again. */
  private alarm(held: HeldLock): void {
    const left = validity(held.validFor) - this.clock.age(held.confirmed);
    const delay = held.fixed ? left : left - (held.leaseTime * 2) / 3;
    this.timers.set(
      held,
      this.runtime.timer(delay, () => {
        this.timers.delete(held);
        if (this.overdue(held)) this.lose(held, 'its lease ended');
        else if (held.fixed) this.alarm(held);
        else this.renew(held);
      }),
    );
  }

  private schedule(): void {
    const { oldest } = this.resting;
    const due = oldest === undefined ? HEARTBEAT : oldest.leaseTime / 3 - this.clock.age(oldest.confirmed);
    const renewal = this.renewing.oldest;
    const deadline = renewal === undefined ? HEARTBEAT : this.left(renewal);
    // Never later than a third of the lease: what is guarded after this was scheduled must not fall due before it.
    const delay = Math.min(due, deadline, HEARTBEAT, this.leaseTime / 3);
    this.setBeat(delay);
  }

  private setBeat(delay: number): void {
    this.beatAt = this.runtime.monotonic() + delay;
    this.beat = this.runtime.timer(delay, () => this.round());
  }

  /** @param jumpedAt when the clocks were last seen to part: what was confirmed before has to be confirmed again */
  private round(jumpedAt = Number.NEGATIVE_INFINITY): void {
    this.beat?.cancel();
    this.beat = undefined;
    const jumped = this.lastBeat !== undefined && this.clock.diverged(this.lastBeat);
    this.lastBeat = this.clock.now();
    const confirmedSince = jumped ? this.lastBeat.monotonic : jumpedAt;
    for (let held = this.renewing.oldest; held !== undefined && this.overdue(held); held = this.renewing.oldest) {
      this.lose(held, 'the backend confirmed no renewal before its lease ended');
    }
    if (jumped) this.loseWhatEndedUnnoticed();
    if (this.renewWhatIsDue(confirmedSince)) {
      this.runtime.nextTurn(() => this.round(confirmedSince));
      return;
    }
    const idle = this.resting.oldest === undefined && this.renewing.oldest === undefined && this.timers.size === 0;
    if (idle) this.lastBeat = undefined;
    else if (this.beat === undefined) this.schedule();
  }

  /** @returns whether more are due than one turn takes */
  private renewWhatIsDue(confirmedSince: number): boolean {
    const due = this.leaseTime / 3;
    // Those that fall due soon go along, so that renewals travel in few commands; where there are many, in small crowds.
    const soon = due - this.leaseTime / 60;
    const now = this.clock.now();
    for (let started = 0; ; started++) {
      const held = this.resting.oldest;
      if (held === undefined) return false;
      const isFull = started >= RENEWALS_PER_TURN;
      const age = this.clock.age(held.confirmed, now);
      if (age < (isFull ? due : soon) && held.confirmed.monotonic >= confirmedSince) return false;
      if (isFull) return true;
      this.resting.remove(held);
      if (age >= validity(held.validFor))
        this.lose(
          held,
          'this process could not renew it before its lease ended (was the event loop blocked, or the machine suspended?)',
        );
      else this.renew(held, now);
    }
  }

  private renew(held: HeldLock, sent = this.clock.now()): void {
    this.renewing.push(held);
    this.comeWithin(this.left(held));
    held.unsettled++;
    const { key, type, owner } = held;
    // An extension that is under way must not be cut short by a renewal that overtakes its answer.
    const leaseTime = held.extensions.length > 0 ? Math.max(held.leaseTime, ...held.extensions) : held.leaseTime;
    this.backend.renew({ key, type, owner, leaseTime }).then(
      (there) => {
        held.unsettled--;
        this.failing = false;
        if (held.list !== this.renewing) return;
        this.renewing.remove(held);
        if (!there)
          return this.lose(
            held,
            'it was not there any more when it was to be renewed (force-released, deleted, or the backend lost its data?)',
          );
        held.confirmed = sent;
        held.validFor = held.leaseTime;
        this.rest(held);
        if (this.events.hears('renewed')) this.events.emit('renewed', { name: held.name, owner });
      },
      (error: Error) => {
        held.unsettled--;
        if (held.list !== this.renewing) return;
        this.complain(held, error);
        this.runtime.timer(this.pause(held.leaseTime), () => {
          if (held.list !== this.renewing) return;
          this.renewing.remove(held);
          if (this.overdue(held)) this.lose(held, `it could not be renewed before its lease ended: ${error.message}`);
          else this.renew(held);
        });
      },
    );
  }

  private pause(leaseTime: number): number {
    return Math.min(1_000, Math.max(20, leaseTime / 20)) * (0.5 + this.runtime.random());
  }

  private complain(held: HeldLock, error: Error): void {
    if (this.failing) return;
    this.failing = true;
    this.events.logger.warn(
      `Renewing the lock '${held.name}' failed, and is tried again until its lease ends in ${Math.round(this.left(held))} ms: ${error.message}`,
    );
  }

  private loseWhatEndedUnnoticed(): void {
    for (const held of this.timers.keys()) {
      if (!this.overdue(held)) continue;
      this.drop(held);
      this.lose(held, 'its lease ended while the machine was suspended or its clock was set');
    }
  }

  private left(held: HeldLock): number {
    return validity(held.validFor) - this.clock.age(held.confirmed);
  }

  private overdue(held: HeldLock): boolean {
    return this.left(held) <= 0;
  }

  private lose(held: HeldLock, why: string): void {
    this.drop(held);
    held.lose(
      new LockLostError(
        `The lock '${held.name}' was lost: ${why}. Others may hold it; stop, or fence your writes with the token`,
        held.name,
      ),
    );
  }
}
