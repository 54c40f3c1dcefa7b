import type { BackendError, TransferableType } from '../../backends/lock-backend.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import type { LinkedQueue } from '../collections/linked-queue.js';
import { type RequestOutcome, unusedOwner } from '../lease/background-releases.js';
import { HeldLock, type ReleaseOutcome } from '../lease/held-lock.js';
import { type Moment, validity } from '../lease/lease-clock.js';
import { PendingOwner } from '../lease/pending-acquisitions.js';
import type { Contention } from '../waiting/contention.js';
import type { Waiter } from '../waiting/waiter.js';
import { HandOff, type Route, TokenBlock } from './hand-off.js';

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
  disown(waiter: Waiter, doubt: RequestOutcome): void;
  /** What was under way has ended: go on. */
  resume(): void;
}

/** What happens to a lock whose last share was given back: to the next waiter of this process, or out of it. */
export class LockReleaser {
  private counted: HandOff | undefined;

  constructor(
    private readonly context: AcquisitionContext,
    private readonly queue: GivenBackTo,
  ) {}

  giveBack(held: HeldLock, now?: Moment): ReleaseOutcome | Promise<ReleaseOutcome> {
    if (held.lost !== undefined) {
      this.context.backgroundReleases.release(unusedOwner(held));
      return 'gone';
    }
    const next = this.queue.waiting.first;
    if (next === undefined) return this.release(held);
    const route = this.route(held, next, now);
    if (route === 'release') return this.release(held);
    if (route === 'transfer') return this.transfer(held, next);
    if (this.handOff.shouldYieldToEventLoop()) this.context.runtime.nextTurn(() => this.handOnAfterBreath(held));
    else this.handOn(held, next);
    return 'released';
  }

  private route(held: HeldLock, next: Waiter, now = this.context.clock.now()): Route {
    return this.handOff.route(held, next, this.queue.waiting.length, this.context.clock, now);
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

  private transfer(held: HeldLock, next: Waiter): Promise<ReleaseOutcome> {
    const { clock, backend } = this.context;
    this.queue.drop(held);
    this.queue.underWay++;
    const { leaseTime, fixed } = next.terms;
    const type = next.terms.type as TransferableType; // as route() has found
    const { reserve } = this.queue;
    const sent = clock.now();
    next.sent = sent;
    const flight = new PendingOwner(held.key, next.owner);
    this.context.pendingAcquisitions.begin(flight);
    return backend.transfer({ key: held.key, type, from: held.owner, to: next.owner, leaseTime, reserve }).then(
      (reply) => {
        this.context.pendingAcquisitions.end(flight);
        this.queue.underWay--;
        this.context.backgroundReleases.followUp(held);
        next.sent = undefined;
        if (reply === undefined) {
          this.queue.resume();
          return 'gone';
        }
        if (flight.interference === 'removed') {
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
        heir.lateCopiesUntil = reply.validUntil;
        this.queue.hold(heir, now);
        if (this.queue.waiting.remove(next)) {
          this.announce(heir);
          next.grant(heir);
        } else void this.giveBack(heir);
        this.queue.resume();
        return 'released';
      },
      (error: BackendError) => {
        this.context.pendingAcquisitions.end(flight);
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
    return this.context.backend.release(held).then(
      (reply) => {
        this.queue.underWay--;
        this.context.backgroundReleases.followUp(held);
        if (turns && !reply.published) queue.contended?.releasedSilently();
        if (turns && reply.released) this.yieldTo(reply.listeners);
        queue.resume();
        // Executed, its answer lost, sent again by the client: the second answer says that nothing was there.
        const twice = reply.resent && this.context.clock.age(held.confirmed) < validity(held.validFor);
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
    this.context.backgroundReleases.release({ ...unusedOwner(held), leaseTime: held.validFor });
    this.queue.resume();
    return 'unreachable';
  }

  private announce({ name, owner, token }: HeldLock): void {
    const { events } = this.context;
    if (events.hears('handoff')) events.emit('handoff', { name, owner, fencingToken: token });
  }
}
