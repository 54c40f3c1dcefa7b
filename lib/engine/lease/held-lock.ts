import type { LockType } from '../../backends/lock-backend.js';
import { listOf } from '../collections/list-of.js';
import type { LockLostError } from '../errors.js';
import type { TokenBlock } from '../queue/hand-off.js';
import type { Downgrade } from '../scope/downgrade.js';
import type { Moment } from './lease-clock.js';
import type { LockLease } from './lock-lease.js';
import type { RenewalList } from './renewal-list.js';

/** Who is told when the last share of a held lock is given back, and when the lock is lost. */
export interface LockKeeper {
  /** Of the lock. */
  readonly name: string;
  readonly key: string;
  /**
   * Frees the lock or passes it on. A promise settles when the caller may go on; without one, that is at once.
   *
   * @param now a moment that has just been read
   */
  giveBack(held: HeldLock, now?: Moment): ReleaseOutcome | Promise<ReleaseOutcome>;
  /** Keeps it out of queues and renewals: it lapses by itself. */
  forget(held: HeldLock): void;
  lost(held: HeldLock): void;
}

/** `gone`: the owner was not there any more. `unreachable`: the backend gave no answer; the lease's end frees the lock. */
export type ReleaseOutcome = 'released' | 'gone' | 'unreachable';

const NO_SHARES: readonly LockLease[] = [];
const NO_EXTENSIONS: readonly number[] = [];

/**
 * A lock that the backend holds for one owner of this process. Leases are shares in it: one for the acquisition, one for
 * each re-entry; after a hand-off, the next waiter's.
 */
export class HeldLock {
  /** The shares: leases that were not released yet. */
  shares: readonly LockLease[] = NO_SHARES;
  /** Set once, for good. */
  lost: LockLostError | undefined;
  /** A write lock whose owner reads too, or has done so: by a read lock of the same owner, which may outlive this one. */
  downgrade: Downgrade | undefined;
  /** Commands about this owner that were not answered yet. */
  unsettled = 0;
  /** The lengths of those of them that extend the lease. */
  extensions: readonly number[] = NO_EXTENSIONS;

  /** Copies of its acquisition may be under way, which the backend executes until this time of its clock. */
  lateCopiesUntil: number | undefined;

  private aloneInList: readonly HeldLock[] | undefined;

  /** Where it stands with the watchdog. */
  list: RenewalList | undefined;
  older: HeldLock | undefined;
  newer: HeldLock | undefined;

  constructor(
    readonly keeper: LockKeeper,
    readonly type: LockType,
    readonly owner: string,
    /** The lease that was asked for at the acquisition. */
    readonly leaseTime: number,
    readonly fixed: boolean,
    /** Before the command was sent that set the lease last, and was confirmed. */
    public confirmed: Moment,
    /** Fencing token of the present shares. */
    public token: number,
    /** When the lock came into this process, on the monotonic clock, in whole ms: hand-offs do not change it. */
    readonly since: number,
    /** Undefined: none were reserved. */
    readonly block?: TokenBlock,
  ) {
    this.validFor = leaseTime;
  }

  /** Milliseconds of lease that were confirmed at {@link confirmed}; differs from leaseTime after `extend`. */
  validFor: number;

  get name(): string {
    return this.keeper.name;
  }

  get key(): string {
    return this.keeper.key;
  }

  /** A list of it alone: one for all to whom it is handed on. */
  get alone(): readonly HeldLock[] {
    this.aloneInList ??= listOf(this);
    return this.aloneInList;
  }

  share(lease: LockLease): void {
    this.shares = this.shares.length === 0 ? listOf(lease) : [...this.shares, lease];
  }

  /** Lets it lapse: what its shares do does not matter any more. */
  disown(): void {
    this.shares = NO_SHARES;
  }

  /** Takes one share away; the last one frees the lock or passes it on. */
  drop(share: LockLease, now: Moment): ReleaseOutcome | Promise<ReleaseOutcome> {
    this.shares = this.shares.length === 1 ? NO_SHARES : this.shares.filter((other) => other !== share);
    if (this.shares.length > 0) return 'released';
    return this.keeper.giveBack(this, now);
  }

  lose(error: LockLostError): void {
    if (this.lost !== undefined) return;
    this.lost = error;
    this.keeper.lost(this);
    for (const lease of this.shares) lease.lose(error);
  }
}
