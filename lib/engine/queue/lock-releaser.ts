import type { Acquired, BackendError, TransferableType } from '../../backends/lock-backend.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import { unusedOwner } from '../lease/background-releases.js';
import { HeldLock, type LockWaiter, type ReleaseOutcome } from '../lease/held-lock.js';
import type { Moment } from '../lease/lease-clock.js';
import { PendingOwner } from '../lease/pending-acquisitions.js';
import { TokenBlock } from '../lease/token-block.js';
import { lateAnswer } from '../waiting/late-answer.js';
import type { ContendedQueue } from './contended-queue.js';
import { HandOff, type Route } from './hand-off.js';

/** Decides what happens to a lock whose last share was given back: it goes to the next waiter of this process, or out of it. */
export class LockReleaser {
  private readonly handOff = new HandOff();

  constructor(
    private readonly context: AcquisitionContext,
    private readonly queue: ContendedQueue,
  ) {}

  /** How many tokens to reserve for hand-offs. */
  get block(): number {
    return this.handOff.block;
  }

  giveBack(held: HeldLock, now?: Moment): ReleaseOutcome | Promise<ReleaseOutcome> {
    if (held.lost !== undefined) {
      this.context.backgroundReleases.release(unusedOwner(held));
      return 'gone';
    }
    const next = this.queue.waiting.first;
    if (next === undefined) return this.queue.release(held);
    const route = this.route(held, next, now);
    if (route === 'release' || this.sharesSession(held, route)) return this.queue.release(held);
    if (route === 'transfer') return this.transfer(held, next);
    if (this.handOff.shouldYieldToEventLoop()) this.context.runtime.nextTurn(() => this.handOffAfterYield(held));
    else this.handOffTo(next, held);
    return 'released';
  }

  private route(held: HeldLock, next: LockWaiter, now = this.context.clock.now()): Route {
    return this.handOff.route(held, next, this.queue.waiting.length, this.context.clock, now);
  }

  /** Of several locks that were acquired together by a backend that blocks, none can be passed on alone. */
  private sharesSession(held: HeldLock, route: Route): boolean {
    return route === 'transfer' && held.block === undefined && this.context.backend.blocking !== undefined;
  }

  private handOffAfterYield(held: HeldLock): void {
    if (held.lost !== undefined) return;
    const next = this.queue.waiting.first;
    if (next !== undefined && this.route(held, next) === 'local') this.handOffTo(next, held);
    else this.context.events.unawaited(this.giveBack(held));
  }

  private handOffTo(next: LockWaiter, held: HeldLock): void {
    held.handOver();
    this.queue.waiting.remove(next);
    this.announce(held, next);
    next.grant(held);
  }

  /** Replaces the owner in the backend by the waiter's, by one command. */
  private transfer(held: HeldLock, next: LockWaiter): Promise<ReleaseOutcome> {
    const { backend, backgroundReleases, clock, pendingAcquisitions } = this.context;
    const { queue } = this;
    const { leaseTime } = next.terms;
    const type = next.terms.type as TransferableType; // as route() has found
    const { reserve } = queue;
    queue.renewSpentOwner(next);
    const pending = new PendingOwner(held.key, next.owner);
    const sent = clock.now();
    const settle = () => {
      pendingAcquisitions.end(pending);
      queue.transferSettled();
      next.sent = undefined;
    };
    queue.drop(held);
    queue.transferSent();
    next.sent = sent;
    pendingAcquisitions.begin(pending);
    return backend.transfer({ key: held.key, type, from: held.owner, to: next.owner, leaseTime, reserve }).then(
      (reply) => {
        settle();
        backgroundReleases.followUp(held);
        if (reply !== undefined) {
          const isTaken = pending.interference === 'removed' || lateAnswer(clock, sent, leaseTime) !== undefined;
          if (isTaken) queue.abandonOwner(next, { outcome: 'unknown', validUntil: reply.validUntil });
          else this.succeed(held, next, sent, reply);
        }
        // A quorum may have passed it on in part, and have released that again.
        else queue.abandonOwner(next, { outcome: 'unknown', validUntil: undefined });
        queue.resume();
        return reply === undefined ? 'gone' : 'released';
      },
      (error: BackendError) => {
        settle();
        queue.abandonOwner(next, error);
        return queue.releaseInBackground(held);
      },
    );
  }

  private succeed({ keeper, since }: HeldLock, next: LockWaiter, sent: Moment, reply: Acquired): void {
    const { queue } = this;
    const { type, leaseTime, fixed } = next.terms;
    const block = TokenBlock.of(reply.reserved);
    const heir = new HeldLock(keeper, type, next.owner, leaseTime, fixed, sent, reply.token, since, block);
    heir.lateCopiesUntil = reply.validUntil;
    heir.handedOff = true;
    queue.hold(heir, this.context.clock.now());
    if (queue.waiting.remove(next)) {
      this.announce(heir, next);
      next.grant(heir);
    } else this.context.events.unawaited(this.giveBack(heir));
  }

  private announce({ name, type, owner, token }: HeldLock, { terms }: LockWaiter): void {
    const { events } = this.context;
    if (!events.hears('handoff')) return;
    const { group, method } = terms;
    events.emit('handoff', { name, type, group, method, owner, fencingToken: token });
  }
}
