import type { BackendError } from '../backends/lock-backend.js';
import type { Contention } from './contention.js';
import type { EngineParts } from './engine-parts.js';
import { OwnFlight } from './flights.js';
import { HandOff, type Route, TokenBlock } from './hand-off.js';
import { HeldLock, type ReleaseOutcome } from './held-lock.js';
import { type Moment, validity } from './lease-clock.js';
import type { LinkedQueue } from './linked-queue.js';
import { type Doubt, orphanOf } from './orphans.js';
import type { Waiter } from './waiter.js';

/** The queue that a lock goes back to. */
export interface GivenBackTo {
  readonly waiting: LinkedQueue<Waiter>;
  /** How many tokens to reserve with the next acquisition. */
  readonly reserve: number;
  /** Releases and passes whose answer is awaited. */
  underWay: number;
  /** The other processes, made when they are first met. */
  readonly contention: Contention;
  /** Undefined: none was met. */
  readonly contended: Contention | undefined;
  /** @param now a moment that has just been read */
  hold(held: HeldLock, now: Moment): void;
  drop(held: HeldLock): void;
  /** Gives back in the background what the backend may hold for a waiter's owner, and the waiter gets another one. */
  disown(waiter: Waiter, doubt: Doubt): void;
  /** What was under way has ended: go on. */
  resume(): void;
}

/** What happens to a lock whose last share was given back: to the next waiter of this process, or out of it. */
export class GiveBack {
  private counted: HandOff | undefined;

  constructor(
    private readonly parts: EngineParts,
    private readonly queue: GivenBackTo,
  ) {}

  giveBack(held: HeldLock, now?: Moment): ReleaseOutcome | Promise<ReleaseOutcome> {
    if (held.lost !== undefined) {
      this.parts.orphans.giveBack(orphanOf(held));
      return 'gone';
    }
    const next = this.queue.waiting.first;
    if (next === undefined) return this.release(held);
    const route = this.route(held, next, now);
    if (route === 'release') return this.release(held);
    if (route === 'pass') return this.pass(held, next);
    if (this.handOff.takesBreath()) this.parts.runtime.nextTurn(() => this.handOnAfterBreath(held));
    else this.handOn(held, next);
    return 'released';
  }

  private route(held: HeldLock, next: Waiter, now = this.parts.clock.now()): Route {
    return this.handOff.route(held, next, this.queue.waiting.length, this.parts.clock, now);
  }

  private handOnAfterBreath(held: HeldLock): void {
    if (held.lost !== undefined) return;
    const next = this.queue.waiting.first;
    if (next !== undefined && this.route(held, next) === 'local') {
      this.handOn(held, next);
    } else {
      void this.giveBack(held);
    }
  }

  private handOn(held: HeldLock, next: Waiter): void {
    held.token++;
    if (held.block !== undefined) held.block.left--;
    this.queue.waiting.remove(next);
    this.announce(held);
    next.grant(held);
  }

  private pass(held: HeldLock, next: Waiter): Promise<ReleaseOutcome> {
    const { clock, backend } = this.parts;
    this.queue.drop(held);
    this.queue.underWay++;
    const { type, leaseTime, fixed } = next.terms;
    const { reserve } = this.queue;
    const sent = clock.now();
    next.sent = sent;
    const flight = new OwnFlight(held.key, next.owner);
    this.parts.flights.begin(flight);
    return backend.pass({ key: held.key, type, from: held.owner, to: next.owner, leaseTime, reserve }).then(
      (reply) => {
        this.parts.flights.end(flight);
        this.queue.underWay--;
        this.parts.orphans.followUp(held);
        next.sent = undefined;
        if (reply === undefined) {
          this.queue.resume();
          return 'gone';
        }
        if (flight.upset === 'removed') {
          this.queue.disown(next, { outcome: 'unknown', validUntil: reply.validUntil });
          this.queue.resume();
          return 'released';
        }
        const now = clock.now();
        if (clock.age(sent, now) >= validity(leaseTime)) {
          // The new lease has ended before its owner heard of it.
          this.queue.disown(next, { outcome: 'unknown', validUntil: reply.validUntil });
          this.queue.resume();
          return 'released';
        }
        const { keeper, since } = held;
        const heir = new HeldLock(
          keeper,
          type,
          next.owner,
          leaseTime,
          fixed,
          sent,
          reply.token,
          since,
          TokenBlock.of(reply.reserved),
        );
        heir.doubtfulUntil = reply.validUntil;
        this.queue.hold(heir, now);
        if (this.queue.waiting.remove(next)) {
          this.announce(heir);
          next.grant(heir);
        } else void this.giveBack(heir);
        this.queue.resume();
        return 'released';
      },
      (error: BackendError) => {
        this.parts.flights.end(flight);
        this.queue.underWay--;
        next.sent = undefined;
        this.queue.disown(next, error);
        return this.abandon(held);
      },
    );
  }

  /** Out of this process, whoever waits in it. */
  release(held: HeldLock): Promise<ReleaseOutcome> {
    const { queue } = this;
    const turns = held.type !== 'read';
    queue.drop(held);
    this.queue.underWay++;
    if (turns) queue.contended?.releasing();
    return this.parts.backend.release(held).then(
      (reply) => {
        this.queue.underWay--;
        this.parts.orphans.followUp(held);
        if (turns && !reply.told) queue.contended?.releasedSilently();
        if (turns && reply.released) this.yieldTo(reply.listeners);
        queue.resume();
        // Executed, its answer lost, sent again by the client: the second answer says that nothing was there.
        const twice = reply.resent && this.parts.clock.age(held.confirmed) < validity(held.validFor);
        return reply.released || twice ? 'released' : 'gone';
      },
      () => {
        this.queue.underWay--;
        if (turns) queue.contended?.releasedSilently();
        return this.abandon(held);
      },
    );
  }

  /** How many tokens a tenure of this queue needs. */
  get block(): number {
    return this.handOff.block;
  }

  private get handOff(): HandOff {
    this.counted ??= new HandOff();
    return this.counted;
  }

  private yieldTo(listeners: number): void {
    const { queue } = this;
    const others = listeners > 0 ? queue.contention : queue.contended;
    others?.yieldTo(listeners, queue.waiting.length > 0);
  }

  /** The backend did not say whether it is free: see to it in the background, and go on. */
  private abandon(held: HeldLock): ReleaseOutcome {
    this.parts.orphans.giveBack({ ...orphanOf(held), leaseTime: held.validFor });
    this.queue.resume();
    return 'unreachable';
  }

  private announce({ name, owner, token }: HeldLock): void {
    const { events } = this.parts;
    if (events.hears('handoff')) events.emit('handoff', { name, owner, fencingToken: token });
  }
}
