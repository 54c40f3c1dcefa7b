import type { Acquired, LockType } from '../../backends/lock-backend.js';
import type { Attempt } from '../attempt.js';
import { listOf } from '../collections/list-of.js';
import type { LockLostError } from '../errors.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import type { Waiter } from '../waiting/waiter.js';
import type { Renewable, RenewalList } from '../watchdog.js';
import type { Moment } from './lease-clock.js';

/** Handles a held lock whose last share is released, and a held lock that is lost. */
export interface LockKeeper {
  /** The lock's name. */
  readonly name: string;
  readonly key: string;
  /**
   * Frees the lock or hands it off. If it returns a promise, the caller continues when that settles; otherwise at once.
   *
   * @param now a moment that has just been read
   */
  giveBack(held: HeldLock, now?: Moment): ReleaseOutcome | Promise<ReleaseOutcome>;
  /** Removes it from queues and renewals. The lock ends with its lease. */
  forget(held: HeldLock): void;
  lost(held: HeldLock): void;
}

/**
 * `gone`: the owner was not there any more. `unreachable`: the backend gave no answer; the lock is freed when its lease
 * ends.
 */
export type ReleaseOutcome = 'released' | 'gone' | 'unreachable';

/** What a lease keeps of the terms of its acquisition. */
export type LeaseTerms = Pick<AcquisitionTerms, 'onLost' | 'group' | 'method'>;

/** One lease's part in a held lock. */
export interface LockShare {
  readonly terms: LeaseTerms;
  lose(error: LockLostError): void;
}

/** How the owner of a write lock comes to read, too. */
export interface ReadDowngrade {
  /** Grants the read lock; `undefined` where the write lock was given back meanwhile. */
  enqueue(waiter: Waiter<HeldLock | undefined>): void;
  /** The write lock is given back. */
  abandon(): void;
}

/** A caller that waits for a lock in a queue. */
export type LockWaiter = Waiter<HeldLock>;

/** Fencing tokens that were reserved with an acquisition, for the callers to whom the lock is handed off. */
export class TokenBlock {
  /** How many are still unused. */
  left: number;

  constructor(readonly size: number) {
    this.left = size;
  }
}

const NO_SHARES: readonly LockShare[] = [];

/**
 * A lock that the backend holds for one owner of this process. Leases are shares in it: one for the acquisition and one
 * for each re-entry; after a hand-off, the next waiter's.
 */
export class HeldLock implements Renewable<HeldLock> {
  /** Leases that were not released yet. */
  shares: readonly LockShare[] = NO_SHARES;
  /** It did not come from the backend, but from another caller of this process. */
  handedOff = false;
  /** Set once, for good. */
  lost: LockLostError | undefined;
  /** Set for a write lock whose owner also holds, or has held, the read lock, which may outlive the write lock. */
  downgrade: ReadDowngrade | undefined;
  /** Copies of its acquisition may be under way; the backend executes them until this time of its clock. */
  lateCopiesUntil: number | undefined;

  /**
   * Until this moment of the monotonic clock it is kept, also when its last share is given back earlier: see
   * holdAtLeast.
   */
  keepUntil = 0;

  /** Its position in a list of the watchdog. */
  list: RenewalList<HeldLock> | undefined;
  earlier: HeldLock | undefined;
  later: HeldLock | undefined;

  /** Milliseconds of lease as of {@link confirmed}; it differs from leaseTime after `extend`. */
  validFor: number;

  /** Commands about this owner that were not answered yet. */
  private unanswered = 0;
  private aloneInList: readonly HeldLock[] | undefined;

  readonly type: LockType;
  /** The field in the backend. */
  readonly owner: string;
  /** The lease time that was requested with the acquisition. */
  readonly leaseTime: number;
  /** The moment before the last confirmed command that set the lease was sent. */
  confirmed: Moment;
  /** Fencing token of the present shares. */
  token: number;
  /** Tokens for hand-offs; `undefined`: none were reserved. */
  readonly block: TokenBlock | undefined;

  /**
   * @param attempt was granted
   * @param fixed the watchdog does not renew it
   * @param since when the lock came into this process, in whole milliseconds of the monotonic clock; hand-offs do not
   * change it
   */
  constructor(
    readonly keeper: LockKeeper,
    attempt: Attempt,
    readonly fixed: boolean,
    { token, reserved }: Pick<Acquired, 'token' | 'reserved'>,
    readonly since: number,
  ) {
    this.type = attempt.type;
    this.owner = attempt.owner;
    this.leaseTime = this.validFor = attempt.leaseTime;
    this.confirmed = attempt.sent;
    this.lateCopiesUntil = attempt.lateCopiesUntil;
    this.token = token;
    this.block = reserved > 0 ? new TokenBlock(reserved) : undefined;
  }

  get name(): string {
    return this.keeper.name;
  }

  get key(): string {
    return this.keeper.key;
  }

  get leaseEnd(): number {
    return this.confirmed.monotonic + this.validFor;
  }

  /** A list with this lock only; the same list for every lease to which it is handed off. */
  get alone(): readonly HeldLock[] {
    this.aloneInList ??= listOf(this);
    return this.aloneInList;
  }

  /** No command about this owner is under way. */
  get settled(): boolean {
    return this.unanswered === 0;
  }

  share(lease: LockShare): void {
    this.shares = this.shares.length === 0 ? listOf(lease) : [...this.shares, lease];
  }

  /** Lets the lock lapse: its shares do not matter any more. */
  disown(): void {
    this.shares = NO_SHARES;
  }

  /** Keeps the lock until this moment of the monotonic clock at least. */
  keep(until: number): void {
    this.keepUntil = Math.max(this.keepUntil, until);
  }

  /** Removes one share; the last one frees the lock or hands it off. */
  drop(share: LockShare, now: Moment): ReleaseOutcome | Promise<ReleaseOutcome> {
    this.shares = this.shares.length === 1 ? NO_SHARES : this.shares.filter((other) => other !== share);
    if (this.shares.length > 0) return 'released';
    return this.keeper.giveBack(this, now);
  }

  /** The backend has set the lease to `leaseTime`, by a command that was sent after `sent`. */
  confirm(sent: Moment, leaseTime: number): void {
    this.confirmed = sent;
    this.validFor = leaseTime;
  }

  /** A command about this owner is sent. */
  commandSent(): void {
    this.unanswered++;
  }

  commandSettled(): void {
    this.unanswered--;
  }

  /** Hands it off inside this process: its next lease gets the next reserved token. */
  handOver(): void {
    this.token++;
    this.handedOff = true;
    if (this.block !== undefined) this.block.left--;
  }

  lose(error: LockLostError): void {
    if (this.lost !== undefined) return;
    this.lost = error;
    this.keeper.lost(this);
    for (const share of this.shares) share.lose(error);
  }
}
