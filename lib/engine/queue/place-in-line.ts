import { LONGEST_GRANT, SHORTEST_GRANT } from '../../backends/line-backend.js';
import type { AcquireRequest, Grant, HeldType, OwnerRef } from '../../backends/lock-backend.js';
import { Attempt } from '../ask/attempt.js';
import type { LockWaiter } from '../hold/held-lock.js';
import type { Services } from '../services.js';
import type { Moment } from '../time/lease-clock.js';
import { type RegisteredWaiter, unregister, WaiterHeartbeat } from './waiter-registration.js';

const NONE: readonly never[] = [];

/** How many requests of a place are remembered. A grant that names an earlier one is asked about. */
const MOST_REQUESTS = 8;

/** A request that made or kept the place, and the moment before it was sent for the first time. */
interface NoncedRequest {
  readonly nonce: string;
  readonly sent: Moment;
}

/** What the last request said that made or kept the place. */
type Place = OwnerRef & Pick<AcquireRequest, 'permits'>;

/** The queue that has the place. */
interface PlaceOwner {
  readonly key: string;
  readonly type: HeldType;
}

/**
 * The place of a queue in the line of its lock, if it has one. Whoever is first in the queue asks under the owner id of
 * the place, and no other waiter may have that id. Without a line, a writer has a place too, so that readers let it go
 * first.
 */
export class PlaceInLine {
  private present: Place | undefined = undefined;
  /** The waiter that asked under the place last. */
  private asker: LockWaiter | undefined = undefined;
  /**
   * Places whose owner ids cannot be used again. They are kept until the next attempt is answered, so that no reader gets
   * the lock before the writer.
   */
  private spent: readonly OwnerRef[] = NONE;
  private heartbeat: WaiterHeartbeat<RegisteredWaiter> | undefined = undefined;
  private requests: readonly NoncedRequest[] = NONE;

  constructor(
    private readonly services: Services,
    private readonly queue: PlaceOwner,
    /** Called when the place has lapsed. */
    private readonly lapsed: () => void,
  ) {}

  get exists(): boolean {
    return this.present !== undefined;
  }

  get owner(): string | undefined {
    return this.present?.owner;
  }

  /** The last request under the place. */
  get attempt(): Attempt | undefined {
    return this.present instanceof Attempt ? this.present : undefined;
  }

  /**
   * Whether a request under the place is unanswered. What it takes would be released together with the place, also after
   * it went to another caller of this process.
   */
  get isAsking(): boolean {
    return this.attempt?.state === 'pending';
  }

  isOf(owner: string | undefined): boolean {
    return this.present !== undefined && this.present.owner === owner;
  }

  /**
   * Whether a waiter may ask under the place: it reads or writes as the place says, and lets as many hold the lock. The
   * place may have been granted a permit for which a smaller number leaves no room.
   */
  isFor({ terms }: LockWaiter): boolean {
    const { present } = this;
    return present !== undefined && present.type === terms.type && (present.permits ?? 0) <= (terms.permits ?? 0);
  }

  /** The next request of this waiter makes the place, or keeps it if it is one for him. */
  use(waiter: LockWaiter): void {
    if (this.exists && !this.isFor(waiter)) this.leave();
    if (this.present === undefined) this.begin(waiter);
    else {
      this.dropAsker();
      waiter.takePlace(this.present.owner);
    }
    this.asker = waiter;
  }

  /** The next request of this waiter makes a place, or takes over the present one in the backend. */
  begin({ terms, owner }: LockWaiter): void {
    this.present = { key: this.queue.key, type: terms.type, owner };
    this.requests = NONE;
  }

  /** The nonce of a request that is sent now, and that makes or keeps the place. */
  newNonce(): string {
    const { clock, runtime } = this.services;
    const request = { nonce: runtime.uuid(), sent: clock.now() };
    this.requests = [...this.requests.slice(1 - MOST_REQUESTS), request];
    return request.nonce;
  }

  /** With which lease the place is granted the lock: who wants another one asks for it. */
  grantLease({ terms }: LockWaiter): number {
    const lease = Math.min(terms.leaseTime, this.services.watchdog.leaseTime);
    return Math.min(LONGEST_GRANT, Math.max(SHORTEST_GRANT, lease));
  }

  /**
   * When the lease of a grant begins. It counts from before the request with its nonce was sent: a grant can only be
   * later, whatever the clocks of servers do. Only if a short lease would be nearly over then, the server's clock counts,
   * too.
   *
   * @returns undefined unless the grant is for a known request of the place and has the lease that this waiter wants, and
   *   most of it is certainly left
   */
  beginOf(grant: Grant, waiter: LockWaiter, now: Moment): Moment | undefined {
    const { clock } = this.services;
    const { leaseTime } = waiter.terms;
    const sent = this.requests.find(({ nonce }) => nonce === grant.nonce)?.sent;
    const isWanted = leaseTime <= grant.lease && this.grantLease(waiter) === grant.lease;
    if (sent === undefined || !isWanted || !this.isFor(waiter)) return undefined;
    const most = (leaseTime * 2) / 3;
    const granted = clock.after(sent, grant.after);
    const begun = clock.left(sent, leaseTime, now) < most ? granted : sent;
    // A lease that begins in the future: the server's clock was advanced, or this machine was suspended.
    const isInFuture = granted.monotonic > now.monotonic;
    return isInFuture || clock.left(begun, leaseTime, now) < most || clock.diverged(begun) ? undefined : begun;
  }

  /** This request makes or keeps the place. */
  asks(attempt: Attempt): void {
    this.present = attempt;
  }

  /** Whoever asked under the place last asks under another owner id from now on. */
  dropAsker(): void {
    if (this.present !== undefined) this.asker?.dropPlace(this.present.owner);
  }

  /** The place has ended in the backend, or will be ended there by somebody else. */
  end(): void {
    this.present = undefined;
  }

  /** Ends the place like {@link end}. Its owner id is not used again. */
  forget(): void {
    if (this.present === undefined) return;
    this.dropAsker();
    this.services.formerPlaces.add(this.present.owner);
    this.present = undefined;
  }

  /**
   * Gives up the place: nobody waits here any more, or the lock came by another way. A place under which this process asks
   * is kept for now.
   */
  leave(): void {
    if (this.present === undefined || this.isAsking) return;
    unregister(this.services, this.present);
    this.forget();
  }

  /** Gives up the place when the next request is answered, because its owner id cannot be used again. */
  spend(): void {
    if (this.present !== undefined) this.spent = [...this.spent, this.present];
    this.present = undefined;
  }

  leaveSpent(): void {
    if (this.spent.length === 0) return;
    for (const place of this.spent) {
      unregister(this.services, place);
      this.services.formerPlaces.add(place.owner);
    }
    this.spent = NONE;
  }

  /** Keeps the place while it exists. */
  keep(): void {
    const { key, type } = this.queue;
    const newNonce = () => (this.attempt?.nonce === undefined ? undefined : this.newNonce());
    const places = (): readonly RegisteredWaiter[] =>
      this.present === undefined ? [] : [{ owner: this.present.owner, settled: false, newNonce }];
    this.heartbeat ??= new WaiterHeartbeat(this.services, key, type, places, this.lapsed, () => {
      const { attempt } = this;
      return attempt && { sent: attempt.sent.monotonic, areKeptLonger: attempt.isPlaceKeptLonger };
    });
    this.heartbeat.start();
  }

  close(): void {
    this.heartbeat?.stop();
  }
}
