import { BackOff } from '../../backends/back-off.js';
import type { AcquireReply, BackendError } from '../../backends/lock-backend.js';
import type { Timer } from '../../backends/runtime.js';
import { type Asker, Attempt, type Failed, type Outcome } from '../ask/attempt.js';
import { Doubt } from '../ask/doubt.js';
import type { LockLostError } from '../errors.js';
import { confirmLease } from '../hold/confirm-lease.js';
import {
  type HeldLock,
  type LockKeeper,
  type ReadDowngrade,
  type ReleaseListener,
  tellOutcome,
  UNAWAITED,
} from '../hold/held-lock.js';
import { isKept, leaveToLapse } from '../hold/hold-at-least.js';
import { lockLostError } from '../hold/loss-reasons.js';
import type { LockTable } from '../lock-table.js';
import { mayWait } from '../queue/begin-wait.js';
import type { LockQueue } from '../queue/lock-queue.js';
import { permanentError, unavailableError } from '../wait/wait-errors.js';
import type { Waiter } from '../wait/waiter.js';

/**
 * A reader that is granted `undefined`, because the write lock was given back meanwhile, acquires the read lock by
 * itself.
 */
type Reader = Waiter<HeldLock | undefined>;

/**
 * Lets the owner of a write lock hold the read lock as well. It is held under the writer's owner id, so that it
 * outlives the write lock. Once the write lock has been given back, other readers are admitted, but writers are not.
 * All readers in the writer's scope share one read lock, which is kept until the write lock is given back. Otherwise a
 * release that arrives late could free a lock that another reader has just taken. For the same reason, a lost read lock
 * is not released before the write lock.
 */
export class Downgrade implements LockKeeper, ReadDowngrade, Asker<Reader, AcquireReply> {
  /** Set until the read lock is given back or lost. */
  private read: HeldLock | undefined;
  /** The queue of the latest read lock. It is kept so that giving back a lost lock does not create another queue. */
  private queue!: LockQueue;
  private readonly waiting = new Set<Reader>();
  /** Whether the write lock was given back. */
  private over = false;
  /** The pending request. */
  private pending: Attempt | undefined;
  /**
   * What the requests for the read lock, and lost read locks, may have left. It is not undone before the write lock is
   * given back, because both have the same owner id.
   */
  private readonly doubt = new Doubt();
  private failure: BackendError | undefined;
  private readonly services: LockTable['services'];
  private readonly backOff: BackOff;
  private timer: Timer | undefined;

  constructor(
    private readonly table: LockTable,
    private readonly write: HeldLock,
  ) {
    this.services = table.services;
    this.backOff = new BackOff(this.services.runtime);
  }

  get name(): string {
    return this.write.name;
  }

  get key(): string {
    return this.write.key;
  }

  /**
   * The write lock was given back or lost while the read lock was being confirmed. Its owner id must not be sent again. (A
   * write lock that is only left to lapse still has shares.)
   */
  private get writerHasLeft(): boolean {
    return this.write.shares.length === 0 || this.write.lost !== undefined;
  }

  enqueue(waiter: Reader): void {
    const { read } = this;
    const state = read && this.services.watchdog.judge(read);
    if (read !== undefined && state === 'held' && !this.lapses(read)) return waiter.grant(read);
    if (read !== undefined && state === 'unsure') return this.confirm(read, waiter);
    if (this.writerHasLeft && this.pending === undefined) {
      this.waiting.add(waiter);
      return this.dismiss();
    }
    if (!mayWait(this.services, waiter, this.key)) return;
    this.waiting.add(waiter);
    waiter.watch(() => {
      const error = this.unavailable(waiter);
      this.remove(waiter);
      return error;
    });
    this.attempt();
  }

  /** Handles the end of the write lock. An acquisition that is under way is given back when it is answered. */
  abandon(): void {
    this.over = true;
    const { events } = this.services;
    const { read } = this;
    if (read !== undefined && read.shares.length === 0 && !this.lapses(read)) {
      const now = this.services.clock.now();
      if (isKept(read, now)) void leaveToLapse(this.services, read, now);
      else events.unawaited(this.giveBack(read, UNAWAITED));
    }
    if (this.pending !== undefined) return;
    if (this.read === undefined) this.undo();
    this.dismiss();
  }

  /** Until the write lock is given back, the read lock is there for the next reader, whatever `holdAtLeast` says. */
  get outlivesShares(): boolean {
    return !this.over;
  }

  giveBack(read: HeldLock, listener: ReleaseListener): Promise<void> | undefined {
    if (read.lost !== undefined) {
      this.doubt.note({ leavesTraces: true, lateCopiesUntil: read.lateCopiesUntil });
      // If a later reader holds, or is about to hold, the read lock under the same owner, both are released together.
      if (this.over && this.read === undefined && this.pending === undefined) this.undo();
      return tellOutcome(listener, 'gone');
    }
    if (!this.over) return tellOutcome(listener, 'released');
    this.read = undefined;
    return this.queue.giveBack(read, {
      waits: listener.waits,
      releaseSettled: (outcome) => {
        // Not earlier, because the read lock would look lost.
        this.undo();
        listener.releaseSettled(outcome);
      },
    });
  }

  forget(read: HeldLock): void {
    if (this.read === read) this.read = undefined;
    this.queue.forget(read);
  }

  /** Its lease was shortened for `holdAtLeast`, so nobody may get it any more. */
  private lapses(read: HeldLock): boolean {
    return read.lost === undefined && !this.services.watchdog.guards(read);
  }

  lost(read: HeldLock): void {
    this.read = undefined;
    // An unused read lock may lapse while the write lock is held, but must not be taken from the next reader.
    if (read.shares.length === 0) this.queue.forget(read);
    else this.queue.lost(read);
  }

  private undo(): void {
    const { key, owner, leaseTime } = this.write;
    this.doubt.undo(this.services.backgroundReleases, { key, type: 'read', owner }, leaseTime);
  }

  /** Confirms the read lock. If it turns out to be lost, the reader acquires it again. */
  private confirm(read: HeldLock, waiter: Reader): void {
    confirmLease(this.services, read, waiter.terms).then(
      () => this.enqueue(waiter),
      (error) => waiter.refuse(error),
    );
  }

  private attempt(): void {
    const [first] = this.waiting;
    if (first === undefined || this.pending !== undefined) return;
    const { services, key, write } = this;
    const attempt = new Attempt(services, key, write.owner, first.terms);
    this.pending = attempt;
    attempt.send(services.backend.acquire(attempt), this, first);
  }

  /** Called when the request has ended. */
  settled(outcome: Outcome, first: Reader): void {
    this.pending = this.failure = undefined;
    this.doubt.note(outcome);
    if (outcome.state === 'failed') return this.failed(outcome);
    this.backOff.reset();
    if (outcome.state !== 'granted') {
      if (this.over || outcome.state === 'removed') this.undo();
      return this.dismiss();
    }
    this.queue = this.table.queueOf('read', this.name, this.key) as LockQueue;
    const read = this.queue.adopt(outcome, first.terms, outcome.reply.token, this);
    this.read = read;
    if (this.waiting.size === 0) this.services.events.unawaited(this.giveBack(read, UNAWAITED));
    for (const waiter of this.takeAll()) waiter.grant(read);
  }

  private failed({ error }: Failed): void {
    this.failure = error;
    if (this.over) return this.abandon();
    const { backend, outages, runtime } = this.services;
    if (error.kind !== 'unavailable') return this.refuseAll((waiter) => permanentError(waiter, backend, error));
    for (const waiter of this.waiting) {
      const isOver = outages.isOver(this.key, waiter.calledAt, waiter.terms.outageTimeout);
      if (!waiter.triesOnce && !isOver) continue;
      this.remove(waiter);
      waiter.refuse(isOver ? outages.refusal(waiter, [this.key]) : this.unavailable(waiter));
    }
    if (this.waiting.size === 0) return;
    this.timer?.cancel();
    this.timer = runtime.timer(this.backOff.next(), () => this.attempt(), 'keep-alive');
  }

  /** Settles all readers after the write lock has ended. */
  private dismiss(): void {
    if (this.over && this.write.lost === undefined) for (const waiter of this.takeAll()) waiter.grant(undefined);
    else this.refuseAll((waiter) => this.lossOf(waiter));
  }

  private refuseAll(errorOf: (waiter: Reader) => Error): void {
    for (const waiter of this.takeAll()) waiter.refuse(errorOf(waiter));
  }

  private takeAll(): readonly Reader[] {
    const waiters = [...this.waiting];
    for (const waiter of waiters) this.remove(waiter);
    return waiters;
  }

  private remove(waiter: Reader): void {
    this.waiting.delete(waiter);
    if (this.waiting.size === 0) this.timer?.cancel();
  }

  private unavailable(waiter: Reader): Error {
    return unavailableError(waiter, this.services.backend, this.failure);
  }

  private lossOf({ name }: Reader): LockLostError {
    return this.write.lost ?? lockLostError(name, this.services.watchdog.explain(this.write, 'gone-at-downgrade'));
  }
}
