import { type AcquireReply, BackendError } from '../../backends/lock-backend.js';
import type { Timer } from '../../backends/runtime.js';
import { LockLostError } from '../errors.js';
import type { UnusedOwner } from '../lease/background-releases.js';
import type { HeldLock, LockKeeper, ReleaseOutcome } from '../lease/held-lock.js';
import { type Moment, validity } from '../lease/lease-clock.js';
import { type PendingAcquisition, PendingOwner } from '../lease/pending-acquisitions.js';
import type { LockEngine } from '../lock-engine.js';
import type { AcquisitionQueue } from '../queue/acquisition-queue.js';
import { permanentError, unavailableError } from '../waiting/wait-errors.js';
import type { Waiter } from '../waiting/waiter.js';
import { confirmLease } from './confirm-lease.js';

const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 1_000;

/** It is granted nothing where the write lock was given back meanwhile: then it is on its own. */
type Reader = Waiter<HeldLock | undefined>;

/**
 * How the owner of a write lock comes to read too: under its own name, so that it goes on reading when the write lock is given
 * back; readers come in then, writers don't. All readers in the writer's scope share one read lock, which is kept for the next of
 * them as long as the write lock is held: a release whose answer got lost could otherwise free what another one has just taken.
 */
export class Downgrade implements LockKeeper {
  /** Until it is given back, or lost. */
  private read: HeldLock | undefined;
  /** Where the latest of them stands, or stood: who gives back what was lost must not open a new queue. */
  private queue!: AcquisitionQueue;
  private readonly waiting = new Set<Reader>();
  /** The write lock is gone. */
  private over = false;
  /** When the acquisition that is under way was sent. */
  private sent: Moment | undefined;
  /** An acquisition got no answer: the backend may hold the read lock all the same, or take it until this time of its clock. */
  private unanswered: Pick<UnusedOwner, 'validUntil'> | undefined;
  private failure: BackendError | undefined;
  private pause = FIRST_PAUSE;
  private timer: Timer | undefined;

  constructor(
    private readonly engine: LockEngine,
    private readonly write: HeldLock,
  ) {}

  get name(): string {
    return this.write.name;
  }

  get key(): string {
    return this.write.key;
  }

  enqueue(waiter: Reader): void {
    const { read } = this;
    const state = read && this.engine.context.watchdog.judge(read);
    if (read !== undefined && state === 'held') return waiter.grant(read);
    if (read !== undefined && state === 'unsure') return this.makeCertain(read, waiter);
    this.waiting.add(waiter);
    waiter.watch(() => {
      const refusal = this.unavailable(waiter);
      this.remove(waiter);
      return refusal;
    });
    this.attempt();
  }

  /** The write lock goes. What is under way then is given back when it is answered. */
  abandon(): void {
    this.over = true;
    if (this.read !== undefined && this.read.shares.length === 0) void this.giveBack(this.read);
    if (this.sent !== undefined) return;
    if (this.read === undefined) this.undoUnanswered();
    this.dismiss();
  }

  giveBack(read: HeldLock): ReleaseOutcome | Promise<ReleaseOutcome> {
    if (!this.over && read.lost === undefined) return 'released';
    this.read = undefined;
    const outcome = this.queue.giveBack(read);
    this.undoUnanswered();
    return outcome;
  }

  forget(read: HeldLock): void {
    this.read = undefined;
    this.queue.forget(read);
  }

  lost(read: HeldLock): void {
    this.read = undefined;
    // What nobody used may lapse beside the write lock: it must not be taken from the next reader.
    if (read.shares.length === 0) this.queue.forget(read);
    else this.queue.lost(read);
  }

  private undoUnanswered(): void {
    if (this.unanswered === undefined) return;
    const { key, owner, leaseTime } = this.write;
    this.engine.context.backgroundReleases.release({ key, type: 'read', owner, leaseTime, ...this.unanswered });
    this.unanswered = undefined;
  }

  /** It is asked for again where it proves to be lost. */
  private makeCertain(read: HeldLock, waiter: Reader): void {
    confirmLease(this.engine, read, waiter.terms).then(
      () => this.enqueue(waiter),
      (error) => waiter.refuse(error),
    );
  }

  private attempt(): void {
    const [first] = this.waiting;
    if (first === undefined || this.sent !== undefined) return;
    const { backend, clock, pendingAcquisitions } = this.engine.context;
    const { key, owner } = this.write;
    const { leaseTime } = first.terms;
    this.sent = clock.now();
    const flight = new PendingOwner(key, owner);
    pendingAcquisitions.begin(flight);
    backend.acquire({ key, type: 'read', owner, leaseTime, reserve: 0, fairWaitTimeout: 0, preferWriters: false }).then(
      (reply) => {
        pendingAcquisitions.end(flight);
        this.answered(first, reply, flight);
      },
      (error) => {
        pendingAcquisitions.end(flight);
        this.failed(error);
      },
    );
  }

  private answered(first: Reader, reply: AcquireReply, { interference }: PendingAcquisition): void {
    const sent = this.sent as Moment;
    const { leaseTime } = first.terms;
    if (reply.acquired && this.engine.context.clock.age(sent) >= validity(leaseTime)) {
      const late = `the answer came after the lease of ${leaseTime} ms had ended`;
      return this.failed(new BackendError(late, 'unavailable', 'unknown'));
    }
    this.sent = this.failure = undefined;
    if (reply.validUntil !== undefined) this.unanswered = { validUntil: reply.validUntil };
    this.pause = FIRST_PAUSE;
    if (!reply.acquired) return this.dismiss();
    if (interference === 'removed') {
      this.unanswered = { validUntil: reply.validUntil };
      this.undoUnanswered();
      return this.dismiss();
    }
    this.queue = this.engine.queue('read', this.write.name, this.write.key);
    const read = this.queue.fulfil(this.write.owner, first.terms, sent, reply.token, this);
    this.read = read;
    if (this.waiting.size === 0) void this.giveBack(read);
    for (const waiter of this.takeAll()) waiter.grant(read);
  }

  private failed(error: BackendError): void {
    this.sent = undefined;
    this.failure = error;
    if (error.outcome !== 'refused') this.unanswered = { validUntil: error.validUntil };
    if (this.over) return this.abandon();
    const { backend } = this.engine.context;
    if (error.kind !== 'unavailable') return this.refuseAll((waiter) => permanentError(waiter, backend, error));
    for (const waiter of this.waiting) {
      if (!waiter.triesOnce) continue;
      this.remove(waiter);
      waiter.refuse(this.unavailable(waiter));
    }
    if (this.waiting.size === 0) return;
    this.timer?.cancel();
    this.timer = this.engine.context.runtime.timer(this.pause, () => this.attempt(), 'keep-alive');
    this.pause = Math.min(2 * this.pause, LONGEST_PAUSE);
  }

  /** The write lock is not there any more. */
  private dismiss(): void {
    if (this.over && this.write.lost === undefined) for (const waiter of this.takeAll()) waiter.grant(undefined);
    else this.refuseAll((waiter) => this.lossOf(waiter));
  }

  private refuseAll(refusal: (waiter: Reader) => Error): void {
    for (const waiter of this.takeAll()) waiter.refuse(refusal(waiter));
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
    return unavailableError(waiter, this.engine.context.backend, this.failure);
  }

  private lossOf({ name }: Reader): LockLostError {
    return new LockLostError(
      `The write lock '${name}' was lost: it was not there any more when its read lock was asked for`,
      name,
    );
  }
}
