import { type AcquireReply, BackendError, type Subscription, type Wake } from '../../backends/lock-backend.js';
import type { Timer } from '../../backends/runtime.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import { LinkedQueue } from '../collections/linked-queue.js';
import { unusedOwner } from '../lease/background-releases.js';
import { HeldLock, type ReleaseOutcome } from '../lease/held-lock.js';
import { type Moment, validity } from '../lease/lease-clock.js';
import type { AcquisitionTerms } from '../lock-options.js';
import {
  busyError,
  type KnownHolder,
  permanentError,
  shutdownError,
  unavailableError,
} from '../waiting/wait-errors.js';
import type { Departure, Waiter } from '../waiting/waiter.js';
import { WaiterRequest } from '../waiting/waiter-request.js';
import type { AcquisitionQueue } from './acquisition-queue.js';
import { LongWaitWarning } from './long-wait-warning.js';
import { WaiterHeartbeat } from './waiter-heartbeat.js';

const FIRST_BACKOFF = 50;
const LONGEST_BACKOFF = 1_000;

/**
 * The callers of one process that wait for one fair lock. Every one of them stands in the backend's queue, among those of all
 * processes, and is served in that order alone: nothing is handed on in here. A release wakes the head of the backend's queue,
 * whichever process it is in.
 */
export class FairQueue implements AcquisitionQueue {
  readonly type = 'fair';
  private readonly waiting = new LinkedQueue<Waiter>();
  private readonly byOwner = new Map<string, Waiter>();
  readonly holders = new Set<HeldLock>();
  /** After a failure: each waiter's next attempt. */
  private readonly retries = new Map<Waiter, Timer>();
  private readonly places: WaiterHeartbeat;
  private readonly patience: LongWaitWarning;
  private subscription: Subscription | undefined;
  private timer: Timer | undefined;
  /** Acquisitions, releases and claims whose end is awaited. */
  private underWay = 0;
  private failures = 0;
  private failure: BackendError | undefined;
  private seen: KnownHolder = { holder: undefined, here: false, remaining: -1 };

  constructor(
    private readonly context: AcquisitionContext,
    readonly name: string,
    readonly key: string,
  ) {
    const standing = () => [...this.waiting].filter((waiter) => !waiter.triesOnce);
    this.places = new WaiterHeartbeat(context, key, 'fair', standing, (waiter) => this.attempt(waiter));
    this.patience = new LongWaitWarning(context, this.waiting, () => this.obstruction.holder);
  }

  get length(): number {
    return this.waiting.length;
  }

  enqueue(waiter: Waiter): void {
    this.waiting.push(waiter);
    this.byOwner.set(waiter.owner, waiter);
    waiter.watch((departure) => this.depart(waiter, departure));
    this.patience.watch();
    this.attempt(waiter);
  }

  removed(owners: readonly string[]): void {
    for (const waiter of this.waiting)
      if (waiter.lateCopiesUntil !== undefined && waiter.sent === undefined && owners.includes(waiter.owner))
        this.disown(waiter, undefined);
  }

  rejectWaiters(whom: (waiter: Waiter) => boolean): void {
    for (const waiter of this.waiting) {
      if (whom(waiter)) this.dismiss(waiter, shutdownError('Waiting', waiter.name));
    }
  }

  dismiss(waiter: Waiter, error: Error): void {
    this.leave(waiter);
    waiter.refuse(error);
  }

  claim(): boolean {
    this.underWay++;
    return true;
  }

  unclaim(): void {
    this.underWay--;
    this.retireIfIdle();
  }

  fulfil(owner: string, terms: AcquisitionTerms, sent: Moment, token: number): HeldLock {
    this.underWay--;
    return this.hold(owner, terms, sent, token, this.context.clock.now());
  }

  giveBack(held: HeldLock): ReleaseOutcome | Promise<ReleaseOutcome> {
    const { backgroundReleases, clock, backend } = this.context;
    if (held.lost !== undefined) {
      backgroundReleases.release(unusedOwner(held));
      return 'gone';
    }
    this.drop(held);
    this.underWay++;
    return backend.release(held).then(
      (reply) => {
        this.underWay--;
        backgroundReleases.followUp(held);
        this.retireIfIdle();
        const twice = reply.resent && clock.age(held.confirmed) < validity(held.validFor);
        return reply.released || twice ? 'released' : 'gone';
      },
      () => {
        this.underWay--;
        backgroundReleases.release({ ...unusedOwner(held), leaseTime: held.validFor });
        this.retireIfIdle();
        return 'unreachable';
      },
    );
  }

  forget(held: HeldLock): void {
    this.drop(held);
    this.retireIfIdle();
  }

  lost(held: HeldLock): void {
    this.forget(held);
    if (held.shares.length === 0) this.context.backgroundReleases.release(unusedOwner(held));
    else this.context.events.emit('lost', { name: held.name, owner: held.owner, error: held.lost as Error });
    this.attemptFirst();
  }

  private attempt(waiter: Waiter): void {
    if (waiter.sent !== undefined || waiter.settled) return;
    waiter.sent = this.context.clock.now();
    this.underWay++;
    const fairWaitTimeout = waiter.triesOnce ? 0 : this.context.fairWaitTimeout;
    const request = new WaiterRequest(this.key, waiter, 0, fairWaitTimeout, false);
    this.context.pendingAcquisitions.begin(request);
    this.context.backend.acquire(request).then(
      (reply) => this.answered(waiter, reply, request),
      (error) => this.failed(waiter, error, request),
    );
  }

  private answered(waiter: Waiter, reply: AcquireReply, request: WaiterRequest): void {
    const { owner, terms } = waiter;
    const sent = waiter.sent as Moment;
    const { clock } = this.context;
    this.context.pendingAcquisitions.end(request);
    if (reply.acquired && request.interference === 'removed') return this.takenAway(waiter, reply.validUntil);
    const now = clock.now();
    if (reply.acquired && clock.age(sent, now) >= validity(terms.leaseTime)) {
      const late = `the answer came after the lease of ${terms.leaseTime} ms had ended`;
      return this.failed(waiter, new BackendError(late, 'unavailable', 'unknown'), request);
    }
    this.settleAttempt(waiter);
    if (reply.validUntil !== undefined) waiter.noteLateCopies(reply.validUntil);
    this.failures = 0;
    if (reply.acquired) {
      const held = this.hold(owner, terms, sent, reply.token, now);
      held.lateCopiesUntil = waiter.lateCopiesUntil;
      if (waiter.settled) void this.giveBack(held);
      this.remove(waiter);
      waiter.grant(held);
      return;
    }
    this.seen = { holder: reply.holder, here: false, remaining: reply.remaining };
    if (waiter.settled) {
      this.settleOrphan(waiter);
      this.removeWaiter(waiter);
    } else if (waiter.triesOnce) {
      this.settleOrphan(waiter);
      this.remove(waiter);
      waiter.refuse(this.refusal(waiter));
    } else {
      this.sleep(reply.remaining);
      this.listen();
      this.places.start();
      if (waiter.woken) this.attempt(waiter);
      waiter.woken = false;
    }
    this.retireIfIdle();
  }

  /** It was acquired, and released by force before the answer came: a waiter that is still here lines up again, as another owner. */
  private takenAway(waiter: Waiter, validUntil: number | undefined): void {
    this.settleAttempt(waiter);
    this.disown(waiter, validUntil);
    this.attempt(waiter);
    this.retireIfIdle();
  }

  /** From now on it is another owner: copies of its acquisition may still bring the present one back. */
  private disown(waiter: Waiter, validUntil: number | undefined): void {
    this.byOwner.delete(waiter.owner);
    waiter.noteLateCopies(validUntil);
    this.settleOrphan(waiter);
    waiter.renewOwner();
    if (!waiter.settled) this.byOwner.set(waiter.owner, waiter);
  }

  private failed(waiter: Waiter, error: BackendError, request: WaiterRequest): void {
    this.context.pendingAcquisitions.end(request);
    this.settleAttempt(waiter);
    this.failure = error;
    if (error.outcome === 'unknown') waiter.noteLateCopies(error.validUntil);
    if (request.interference === 'removed') this.disown(waiter, error.validUntil);
    if (waiter.settled) {
      this.settleOrphan(waiter);
      this.removeWaiter(waiter);
    } else if (waiter.triesOnce || error.kind !== 'unavailable') {
      this.leave(waiter);
      waiter.refuse(permanentError(waiter, this.context.backend, error));
    } else {
      const pause = Math.min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** Math.min(this.failures, 10));
      if (this.failures++ === 0) this.context.events.emit('error', this.refusal(waiter));
      const { runtime } = this.context;
      const again = () => {
        this.retries.delete(waiter);
        this.attempt(waiter);
      };
      this.retries.get(waiter)?.cancel(); // it was woken meanwhile, and has failed again
      this.retries.set(waiter, runtime.timer(pause * (0.5 + runtime.random() / 2), again, 'keep-alive'));
    }
    this.retireIfIdle();
  }

  private settleAttempt(waiter: Waiter): void {
    this.underWay--;
    waiter.sent = this.failure = undefined;
  }

  private hold(owner: string, terms: AcquisitionTerms, sent: Moment, token: number, now: Moment): HeldLock {
    const held = new HeldLock(this, 'fair', owner, terms.leaseTime, terms.fixed, sent, token, 0);
    this.holders.add(held);
    this.context.watchdog.guard(held, now);
    return held;
  }

  private drop(held: HeldLock): void {
    this.context.watchdog.drop(held);
    this.holders.delete(held);
  }

  private listen(): void {
    if (this.subscription !== undefined) return;
    const { backend, clientId } = this.context;
    const subscription = backend.subscribe(this.key, 'fair', clientId, (wake) => this.heard(wake));
    this.subscription = subscription;
    // What was released before the subscription stood was not heard: look once more.
    subscription.ready.then(() => {
      if (this.subscription === subscription) this.attemptAll();
    });
  }

  private heard(wake: Wake): void {
    if (wake.kind === 'resync' || wake.owner === undefined) return this.attemptAll();
    const waiter = this.byOwner.get(wake.owner);
    if (waiter === undefined) return;
    if (waiter.sent === undefined) this.attempt(waiter);
    else waiter.woken = true;
  }

  private attemptAll(): void {
    for (const waiter of this.waiting) this.attempt(waiter);
  }

  /** The lease of the holder, or the place of the head, ends without a message: the first in line looks. */
  private sleep(delay: number): void {
    if (delay < 0) return;
    this.timer?.cancel();
    this.timer = this.context.runtime.timer(delay + 1, () => this.attemptFirst(), 'keep-alive');
  }

  private attemptFirst(): void {
    if (this.waiting.first !== undefined) this.attempt(this.waiting.first);
  }

  private depart(waiter: Waiter, _departure: Departure): Error {
    const refusal = this.refusal(waiter);
    this.leave(waiter);
    return refusal;
  }

  /** Takes a waiter out; what the backend may know of it is undone, now or when its acquisition is answered. */
  private leave(waiter: Waiter): void {
    this.remove(waiter);
    if (waiter.sent === undefined) {
      this.settleOrphan(waiter);
      this.removeWaiter(waiter);
    }
    this.retireIfIdle();
  }

  private remove(waiter: Waiter): void {
    this.waiting.remove(waiter);
    this.byOwner.delete(waiter.owner);
    this.retries.get(waiter)?.cancel();
    this.retries.delete(waiter);
    if (this.waiting.length > 0) return;
    this.timer?.cancel();
    this.timer = undefined;
    this.places.stop();
  }

  /** A waiter keeps its owner, and so its place, over attempts without an answer: what they may still do is undone in the end. */
  private settleOrphan({ owner, terms, lateCopiesUntil: validUntil }: Waiter): void {
    if (validUntil === undefined) return;
    const { leaseTime } = terms;
    this.context.backgroundReleases.release({ key: this.key, type: 'fair', owner, leaseTime, validUntil, waits: true });
  }

  private removeWaiter(waiter: Waiter): void {
    if (waiter.triesOnce) return;
    const place = { key: this.key, type: 'fair', owner: waiter.owner } as const;
    const { backend, backgroundReleases, fairWaitTimeout } = this.context;
    backend
      .removeWaiter(place)
      .catch(() => backgroundReleases.release({ ...place, leaseTime: fairWaitTimeout, waits: true }));
  }

  private retireIfIdle(): void {
    if (this.holders.size + this.waiting.length + this.underWay > 0) return;
    this.subscription?.close();
    this.subscription = undefined;
    this.patience.close();
    this.context.queues.retire(this);
  }

  private get obstruction(): KnownHolder {
    const [held] = this.holders;
    if (held === undefined) return this.seen;
    const remaining = Math.max(0, Math.round(held.validFor - this.context.clock.age(held.confirmed)));
    return { holder: held.owner, here: true, remaining, fixed: held.fixed };
  }

  private refusal(waiter: Waiter): Error {
    const unanswered = this.failure === undefined && waiter.sent !== undefined && this.seen.holder === undefined;
    if (this.failure === undefined && !unanswered) {
      const busy = busyError(waiter, this.obstruction);
      const { remainingTime, holder } = busy;
      if (this.context.events.hears('busy'))
        this.context.events.emit('busy', { name: waiter.name, remainingTime, holder });
      return busy;
    }
    return unavailableError(waiter, this.context.backend, this.failure);
  }
}
