import type { LockBackend } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import { LockLostError } from '../errors.js';
import type { EventHub } from '../events/events.js';
import { Alarms } from './alarms.js';
import { announceRenewalFailed, eventOf } from './announce.js';
import { Heartbeat } from './heartbeat.js';
import type { HeldLock } from './held-lock.js';
import { type LeaseClock, type Moment, validity } from './lease-clock.js';
import { RenewalList } from './renewal-list.js';

/** How often the clocks are compared, and `onHeartbeat` is called, while anything is held. */
const HEARTBEAT = 1_000;
/** How many renewals are started before the event loop gets a turn. */
const RENEWALS_PER_TURN = 512;

const GONE =
  'it was not there any more when it was to be renewed (force-released, deleted, or the backend lost its data?)';
const ENDED_UNNOTICED = 'its lease ended while the machine was suspended or its clock was set';
const TOO_LATE =
  'this process could not renew it before its lease ended (was the event loop blocked, or the machine suspended?)';

/**
 * Renews every held lease without a fixed leaseTime at a third of its leaseTime, and declares any lease lost at its deadline, whatever the
 * backend does. One timer serves all of them: leases are kept in the order of their deadlines, and idle ones have the same length, so that
 * this is also the order in which they are to be renewed. Fixed leases, and extended ones that are idle, have timers of their own.
 */
export class Watchdog {
  private readonly idle = new RenewalList<HeldLock>();
  private readonly renewing = new RenewalList<HeldLock>();
  private readonly alarms: Alarms;
  private readonly heartbeat: Heartbeat;
  private lastBeat: Moment | undefined;
  private failing = false;

  constructor(
    private readonly backend: LockBackend,
    private readonly runtime: Runtime,
    private readonly clock: LeaseClock,
    private readonly events: EventHub,
    private readonly watchdogTimeout: number,
    private readonly onHeartbeat: () => void,
  ) {
    this.heartbeat = new Heartbeat(runtime, () => this.round());
    this.alarms = new Alarms(
      runtime,
      (held) => this.untilAlarm(held),
      (held) => this.alarmed(held),
    );
  }

  /** @param now a moment that has just been read */
  guard(held: HeldLock, now: Moment): void {
    if (held.fixed) this.alarms.set(held);
    else this.idle.push(held);
    // An acquisition that was under way for long may be due before the next heartbeat.
    if (this.heartbeat.isScheduled && now.monotonic - held.confirmed.monotonic < this.watchdogTimeout / 10) return;
    this.lastBeat ??= now;
    this.schedule();
  }

  /**
   * Whether the lease is held at this moment, by the clocks alone. A lease past its deadline is declared lost, even if its timer has not
   * fired yet. `unsure`: the clocks have diverged, and {@link confirmNow} may tell.
   */
  judge(held: HeldLock): 'held' | 'lost' | 'unsure' {
    if (held.lost !== undefined) return 'lost';
    if (this.left(held) > 0) return this.clock.diverged(held.confirmed) ? 'unsure' : 'held';
    this.lose(held, 'its lease ended before this process looked at it again (was the event loop blocked?)');
    return 'lost';
  }

  /**
   * Asks the backend about a lease: by a renewal, or for a fixed lease by asking how much of it is left.
   *
   * @throws BackendError when there is no answer
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

  drop(held: HeldLock): void {
    held.list?.remove(held);
    this.alarms.clear(held);
  }

  /** Sets the lease of a guarded lock; a lease that the watchdog renews is never made shorter than it is anyway. */
  extend(held: HeldLock, duration: number): Promise<void> {
    return this.set(held, held.fixed ? duration : Math.max(duration, held.leaseTime), 'extended');
  }

  close(): void {
    this.heartbeat.cancel();
    this.alarms.close();
  }

  private async set(held: HeldLock, leaseTime: number, what: 'extended' | 'confirmed'): Promise<void> {
    const { key, type, owner } = held;
    const sent = this.clock.now();
    // A command that shortens the lease may be executed long before its answer arrives, or without any answer.
    if (this.guards(held) && validity(leaseTime) < this.left(held)) this.confirm(held, sent, leaseTime);
    held.commandSent(leaseTime);
    const answer = this.backend.renew({ key, type, owner, leaseTime });
    const isThere = await answer.finally(() => held.commandSettled(leaseTime));
    if (held.lost !== undefined || !this.guards(held)) return;
    if (!isThere) this.lose(held, `it was not there any more when it was to be ${what}`);
    else if (!held.hasShorterExtension(leaseTime)) this.confirm(held, sent, leaseTime);
  }

  private confirm(held: HeldLock, sent: Moment, leaseTime: number): void {
    this.drop(held);
    held.confirm(sent, leaseTime);
    if (held.fixed || leaseTime > held.leaseTime) this.alarms.set(held);
    else this.rest(held);
  }

  /** Answers and timers that are late leave less time until the next renewal than the heartbeat counts on. */
  private rest(held: HeldLock): void {
    this.idle.push(held);
    if (this.idle.first === held) this.heartbeat.bringForward(held.leaseTime / 3 - this.clock.age(held.confirmed));
  }

  private guards(held: HeldLock): boolean {
    return held.list !== undefined || this.alarms.has(held);
  }

  /** At the deadline of a fixed lease, and when an extended one has to be renewed again. */
  private untilAlarm(held: HeldLock): number {
    return this.left(held) - (held.fixed ? 0 : (held.leaseTime * 2) / 3);
  }

  private alarmed(held: HeldLock): void {
    if (this.left(held) <= 0) this.lose(held, 'its lease ended');
    else if (held.fixed) this.alarms.set(held);
    else this.renew(held);
  }

  private schedule(): void {
    const [next, renewal] = [this.idle.first, this.renewing.first];
    const due = next === undefined ? HEARTBEAT : next.leaseTime / 3 - this.clock.age(next.confirmed);
    const deadline = renewal === undefined ? HEARTBEAT : this.left(renewal);
    // At most a third of the lease: a lock that is guarded after this must not be due before the heartbeat.
    this.heartbeat.schedule(Math.min(due, deadline, HEARTBEAT, this.watchdogTimeout / 3));
  }

  /** @param jumpedAt when the clocks were last seen to diverge: leases that were confirmed before have to be confirmed again */
  private round(jumpedAt = Number.NEGATIVE_INFINITY): void {
    this.heartbeat.cancel();
    const jumped = this.lastBeat !== undefined && this.clock.diverged(this.lastBeat);
    if (this.lastBeat !== undefined && this.clock.timersLag(this.lastBeat)) this.catchUp();
    this.lastBeat = this.clock.now();
    const confirmedSince = jumped ? this.lastBeat.monotonic : jumpedAt;
    for (let held = this.renewing.first; held !== undefined && this.left(held) <= 0; held = this.renewing.first) {
      this.lose(held, 'the backend confirmed no renewal before its lease ended');
    }
    if (this.renewWhatIsDue(confirmedSince)) return this.runtime.nextTurn(() => this.round(confirmedSince));
    if ((this.idle.first ?? this.renewing.first) === undefined && this.alarms.isEmpty) {
      this.lastBeat = undefined;
      return;
    }
    if (!this.heartbeat.isScheduled) this.schedule();
    this.onHeartbeat();
  }

  /** @returns whether more of them are due than one turn takes */
  private renewWhatIsDue(confirmedSince: number): boolean {
    const due = this.watchdogTimeout / 3;
    // Those that are due soon are renewed as well, so that renewals travel in few commands; a large number is spread over several turns.
    const soon = due - this.watchdogTimeout / 60;
    const now = this.clock.now();
    for (let started = 0; ; started++) {
      const held = this.idle.first;
      if (held === undefined) return false;
      const age = this.clock.age(held.confirmed, now);
      const isFull = started >= RENEWALS_PER_TURN;
      if (age < (isFull ? due : soon) && held.confirmed.monotonic >= confirmedSince) return false;
      if (isFull) return true;
      this.idle.remove(held);
      if (age < validity(held.validFor)) this.renew(held, now);
      else this.lose(held, TOO_LATE);
    }
  }

  private renew(held: HeldLock, sent = this.clock.now()): void {
    this.renewing.push(held);
    if (this.renewing.first === held) this.heartbeat.bringForward(this.left(held));
    const { key, type, owner, longestExtension } = held;
    held.commandSent();
    // A renewal that overtakes an extension's answer must not cut the extension short.
    this.backend.renew({ key, type, owner, leaseTime: Math.max(held.leaseTime, longestExtension) }).then(
      (isThere) => {
        held.commandSettled();
        this.failing = false;
        if (held.list === this.renewing) this.renewed(held, isThere, sent);
      },
      (error: Error) => {
        held.commandSettled();
        if (held.list === this.renewing) this.renewLater(held, error);
      },
    );
  }

  private renewed(held: HeldLock, isThere: boolean, sent: Moment): void {
    this.renewing.remove(held);
    if (!isThere) return this.lose(held, GONE);
    held.confirm(sent, held.leaseTime);
    this.rest(held);
    if (this.events.hears('renewed')) this.events.emit('renewed', eventOf(held));
  }

  private renewLater(held: HeldLock, error: Error): void {
    const remainingTime = Math.round(this.left(held));
    const warning = `Renewing the lock '${held.name}' failed; it is tried again until the lease ends in ${remainingTime} ms: ${error.message}`;
    if (!this.failing) this.events.logger.warn(warning);
    announceRenewalFailed(this.events, held, remainingTime, error);
    this.failing = true;
    const pause = Math.min(1_000, Math.max(20, held.leaseTime / 20)) * (0.5 + this.runtime.random());
    this.runtime.timer(pause, () => {
      if (held.list !== this.renewing) return;
      this.renewing.remove(held);
      if (this.left(held) <= 0) this.lose(held, `it could not be renewed before its lease ended: ${error.message}`);
      else this.renew(held);
    });
  }

  /** The machine was suspended, or the wall clock was set forward. */
  private catchUp(): void {
    for (const held of this.alarms.locks) if (this.left(held) <= 0) this.lose(held, ENDED_UNNOTICED);
    this.alarms.reset();
  }

  /** Milliseconds for which it is certainly held. */
  private left({ validFor, confirmed }: HeldLock): number {
    return validity(validFor) - this.clock.age(confirmed);
  }

  private lose(held: HeldLock, why: string): void {
    this.drop(held);
    const advice = 'Others may hold it; stop, or fence your writes with the token';
    held.lose(new LockLostError(`The lock '${held.name}' was lost: ${why}. ${advice}`, held.name));
  }
}
