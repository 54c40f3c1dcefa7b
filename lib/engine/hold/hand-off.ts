import type { TransferableType } from '../../backends/lock-backend.js';
import { Attempt, type AttemptServices, type Granted, type Outcome } from '../ask/attempt.js';
import { unreleasedOwner } from '../ask/unused-owner.js';
import type { LinkedQueue } from '../collections/linked-queue.js';
import type { Moment } from '../time/lease-clock.js';
import { HandOffBudget, mayInherit } from './hand-off-budget.js';
import { HeldLock, type LockWaiter, type ReleaseListener, type ReleaseOutcome, UNAWAITED } from './held-lock.js';
import type { HoldServices } from './hold-services.js';
import type { RecallableRelease } from './recallable-release.js';
import type { Tenure } from './tenure.js';

/** The services that are needed here. */
type HandOffServices = AttemptServices &
  Pick<HoldServices, 'backend' | 'backgroundReleases' | 'clock' | 'events' | 'runtime'>;

/** The queue whose waiters inherit the lock. */
interface QueueOfHandOff {
  readonly key: string;
  readonly waiting: LinkedQueue<LockWaiter>;
  /** The waiter that inherits the lock. */
  readonly heir: LockWaiter | undefined;
  hold(held: HeldLock, now: Moment): void;
  giveBack(held: HeldLock, listener: ReleaseListener): Promise<void> | undefined;
  /** Whether a lock of this kind may go to that waiter. */
  passes(held: HeldLock, next: LockWaiter): boolean;
  /** Gives a waiter a new owner id if its present one cannot be sent again. */
  renewSpentOwner(waiter: LockWaiter): void;
  /** Withdraws a release, so that the lock is held as before. */
  recalled(release: RecallableRelease, now: Moment): void;
  /** Called when a transfer to a waiter has ended, before anybody holds the lock. */
  transferred(waiter: LockWaiter, outcome: Outcome): void;
  /** Serves the next waiter. */
  resume(): void;
}

/** Where a lock goes when its last share is given back while a caller of this process waits. */
type Route =
  /** To that caller, without asking the backend. */
  | 'local'
  /** To that caller, by one command. */
  | 'transfer'
  /** Out of this process. */
  | 'release';

/** Passes a lock from its holder to the next waiter of this process, within {@link HandOffBudget}. */
export class HandOff {
  private readonly budget = new HandOffBudget();

  constructor(
    private readonly services: HandOffServices,
    private readonly queue: QueueOfHandOff,
    private readonly tenure: Tenure,
  ) {}

  /** How many tokens the next acquisition reserves for the callers behind it. Without contention, none are reserved. */
  get reserve(): number {
    return this.queue.waiting.length > 1 || this.budget.isFollowed ? this.budget.block : 0;
  }

  /** Records that a release was answered before another caller arrived. */
  notFollowed(): void {
    this.budget.notFollowed();
  }

  /** Passes the lock to the next waiter. @returns false if it has to leave this process */
  pass(held: HeldLock, next: LockWaiter, now?: Moment): ReleaseOutcome | Promise<ReleaseOutcome> | false {
    const route = this.route(held, next, now);
    return route === 'release' ? false : this.passBy(route, held, next);
  }

  /**
   * Passes a lock whose release has not been sent yet to the first caller that arrives, by the rules for a caller that
   * was already waiting.
   *
   * @returns false if the release is sent all the same
   */
  recall(release: RecallableRelease, next: LockWaiter): boolean {
    const { held } = release;
    const now = this.services.clock.now();
    const route = this.route(held, next, now);
    if (route === 'release') return false;
    this.queue.recalled(release, now);
    this.budget.followed();
    release.passed(this.passBy(route, held, next));
    return true;
  }

  private route(held: HeldLock, next: LockWaiter, now = this.services.clock.now()): Route {
    const { clock, backend } = this.services;
    if (this.budget.isSpent(held, this.queue.waiting.length, now)) return 'release';
    if (next.triesOnce || !this.queue.passes(held, next)) return 'release';
    if (mayInherit(held, next, clock, now)) return 'local';
    // Locks that a blocking backend acquired together cannot be passed on one by one.
    if (next.attempt !== undefined) return 'release';
    return held.block === undefined && backend.blocking !== undefined ? 'release' : 'transfer';
  }

  private passBy(
    route: 'local' | 'transfer',
    held: HeldLock,
    next: LockWaiter,
  ): ReleaseOutcome | Promise<ReleaseOutcome> {
    if (route === 'transfer') return this.transfer(held, next);
    if (this.budget.mustYieldToEventLoop()) this.passLater(held);
    else this.passHere(held, next);
    return 'released';
  }

  private passLater(held: HeldLock): void {
    this.services.runtime.nextTurn(() => this.passAfterTurn(held));
  }

  /** Timers and sockets have had a turn. Meanwhile the lock may have been lost, and the waiter may have left. */
  private passAfterTurn(held: HeldLock): void {
    if (held.lost !== undefined) return;
    const next = this.queue.heir;
    if (next !== undefined && this.route(held, next) === 'local') {
      this.passHere(held, next);
      this.queue.resume(); // perhaps nobody waits any more
    } else this.services.events.unawaited(this.queue.giveBack(held, UNAWAITED));
  }

  /** Lets the next waiter inherit the lock unchanged: the same owner and lease, and the next reserved token. */
  private passHere(held: HeldLock, next: LockWaiter): void {
    held.noteHandOff();
    this.queue.waiting.remove(next);
    this.announce(held, next);
    next.grant(held);
  }

  /** Replaces the owner in the backend by the waiter's, by one command. */
  private transfer(held: HeldLock, next: LockWaiter): Promise<ReleaseOutcome> {
    const { services, queue, tenure, reserve } = this;
    const { key } = queue;
    const { backend, backgroundReleases } = services;
    queue.renewSpentOwner(next);
    tenure.drop(held);
    tenure.beginDeparture();
    const attempt = new Attempt(services, key, next.owner, next.terms, reserve);
    next.attempt = attempt;
    const type = next.terms.type as TransferableType; // the others are not passed
    const { owner: to, leaseTime } = attempt;
    const request = backend.transfer({ key, type, from: held.owner, to, leaseTime, reserve });
    return attempt.outcome(request, (outcome) => {
      tenure.endDeparture();
      queue.transferred(next, outcome);
      const isUnanswered = outcome.state === 'failed' && outcome.reply === undefined;
      if (isUnanswered) backgroundReleases.release(unreleasedOwner(held));
      else backgroundReleases.followUp(held);
      if (outcome.state === 'granted') this.inherit(held, next, outcome);
      queue.resume();
      if (isUnanswered) return 'unreachable';
      return outcome.state === 'gone' ? 'gone' : 'released';
    });
  }

  private inherit(held: HeldLock, next: LockWaiter, outcome: Granted): void {
    const { queue } = this;
    const heir = new HeldLock(held.keeper, outcome, next.terms.fixed, outcome.reply, held.since);
    heir.handedOff = true;
    queue.hold(heir, outcome.answeredAt);
    if (queue.waiting.remove(next)) {
      this.announce(heir, next);
      next.grant(heir);
    } else this.services.events.unawaited(queue.giveBack(heir, UNAWAITED));
  }

  private announce({ name, type, owner, token }: HeldLock, { terms }: LockWaiter): void {
    const { events } = this.services;
    if (!events.hasListener('handoff')) return;
    const { group, method } = terms;
    events.emit('handoff', { name, type, group, method, owner, fencingToken: token });
  }
}
