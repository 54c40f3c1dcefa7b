import type { Acquired, HeldType } from '../../backends/lock-backend.js';
import type { Attempt } from '../ask/attempt.js';
import { listOf } from '../collections/list-of.js';
import type { LockLostError } from '../errors.js';
import type { LeaseTerms } from '../terms/lock-options.js';
import type { Moment } from '../time/lease-clock.js';
import type { Waiter } from '../wait/waiter.js';
import type { Renewable, RenewalList } from './renewal-list.js';
import type { Standby } from './standby.js';

/** Reacts when the last share of a held lock is given back, and when the lock is lost. */
export interface LockKeeper {
  /** The lock's name. */
  readonly name: string;
  readonly key: string;
  /**
   * Frees the lock or hands it off. The listener is told the outcome once, now or later.
   *
   * @param now the current moment, to save reading the clocks again
   * @returns what the listener waits for, and rejects with what it throws then; undefined if there is nothing to wait for
   */
  giveBack(held: HeldLock, listener: ReleaseListener, now?: Moment): Promise<void> | undefined;
  /** Removes the lock from queues and renewals, and lets it lapse. Nobody gets it here any more. */
  forget(held: HeldLock): void;
  lost(held: HeldLock): void;
  /** Whether the lock stays held, and is renewed, after its last share. Left out: it does not. */
  readonly outlivesShares?: boolean;
  /**
   * Gives up a lock that is being detached. Nobody asks until the returned function is called. Locks that cannot be
   * detached have keepers without this method.
   */
  depart?(held: HeldLock): () => void;
}

/**
 * `gone`: the owner no longer held the lock. `unreachable`: the backend gave no answer; the lock is freed when its
 * lease ends.
 */
export type ReleaseOutcome = 'released' | 'gone' | 'unreachable';

/** Is told the outcome of a release. It is an object that exists anyhow, to save the promise of that outcome. */
export interface ReleaseListener {
  /** Whether it needs a promise to wait for. */
  readonly waits: boolean;
  releaseSettled(outcome: ReleaseOutcome): void;
}

/** For code that waits for a release, whatever its outcome. */
export const AWAITED: ReleaseListener = { waits: true, releaseSettled: () => {} };
/** For code that does not wait. */
export const UNAWAITED: ReleaseListener = { waits: false, releaseSettled: () => {} };

/** Tells the outcome of a release, now or when it is known. @returns as {@link LockKeeper.giveBack} */
export function tellOutcome(
  listener: ReleaseListener,
  outcome: ReleaseOutcome | Promise<ReleaseOutcome>,
): Promise<void> | undefined {
  if (typeof outcome !== 'string') return outcome.then((settled) => listener.releaseSettled(settled));
  listener.releaseSettled(outcome);
  return undefined;
}

/** The outcome as a promise, for code that is not on the hot path. */
export async function outcomeOf(
  giveBack: (listener: ReleaseListener) => Promise<void> | undefined,
): Promise<ReleaseOutcome> {
  let outcome: ReleaseOutcome = 'released';
  const releaseSettled = (settled: ReleaseOutcome) => {
    outcome = settled;
  };
  await giveBack({ waits: true, releaseSettled });
  return outcome;
}

/** One lease's part in a held lock. */
export interface LockShare {
  readonly terms: LeaseTerms;
  lose(error: LockLostError): void;
  /** Signals the body to stop. */
  requestEnd(reason: Error): void;
}

/** Lets the owner of a write lock hold the read lock as well. */
export interface ReadDowngrade {
  /** Grants the read lock; `undefined` if the write lock was given back meanwhile. */
  enqueue(waiter: Waiter<HeldLock | undefined>): void;
  /** Called when the write lock is given back. */
  abandon(): void;
}

/** A caller that waits for a lock in a queue. */
export type LockWaiter = Waiter<HeldLock>;

/** Fencing tokens that were reserved with an acquisition, for callers that get the lock by a hand-off. */
export class TokenBlock {
  /** The number of unused tokens. */
  left: number;

  constructor(readonly size: number) {
    this.left = size;
  }
}

const NO_SHARES: readonly LockShare[] = [];

/**
 * A lock that the backend holds for one owner of this process. Leases are shares in it: one for the acquisition, one
 * for each re-entry, and one for each waiter after a hand-off.
 */
export class HeldLock implements Renewable<HeldLock> {
  /** Leases that have not been released yet. */
  shares: readonly LockShare[] = NO_SHARES;
  /** The lock came from another caller of this process, not from the backend. */
  handedOff = false;
  /** Set at most once. */
  lost: LockLostError | undefined;
  /**
   * Why the lock is left to lapse although its body may still run. It is neither renewed nor extended, and goes to nobody
   * in this process when its last share is given back.
   */
  abandoned: Error | undefined = undefined;
  /** How many calls the holder has superseded: see `LockOptions.newest`. */
  superseded = 0;
  /** Set for a write lock whose owner has taken the read lock as well. The read lock may outlive the write lock. */
  downgrade: ReadDowngrade | undefined;
  /** Copies of its acquisition may be under way. The backend may execute them until its clock shows this time. */
  lateCopiesUntil: number | undefined;
  /** Whether its acquisition would have registered the owner as a waiter. */
  readonly wouldWait: boolean;

  /**
   * The moment of the monotonic clock until which the lock is kept, even if its last share is given back earlier: see
   * holdAtLeast.
   */
  keepUntil = 0;

  /** Its position in a list of the watchdog. */
  list: RenewalList<HeldLock> | undefined;
  earlier: HeldLock | undefined;
  later: HeldLock | undefined;

  /** Milliseconds of lease from {@link confirmed} on. It differs from leaseTime after `extend`. */
  validFor: number;

  /** Commands about this owner that have not been answered yet. */
  private unanswered = 0;
  private aloneInList: readonly HeldLock[] | undefined;

  readonly type: HeldType;
  /** The owner id, under which the backend stores the lock. */
  readonly owner: string;
  /** How many may hold the lock, according to its acquisition; undefined for all types but `permits`. */
  readonly permits: number | undefined;
  /** The lease time that the acquisition requested. */
  readonly leaseTime: number;
  /** Whether the watchdog never renews the lease. */
  fixed: boolean;
  private lastConfirmed: Moment;
  standby: Standby | undefined = undefined;
  slot = -1;
  /** The fencing token of the present shares. */
  token: number;
  /** Tokens for hand-offs; `undefined`: none were reserved. */
  readonly block: TokenBlock | undefined;

  /**
   * @param attempt the granted attempt, or what a message says about it
   * @param since the time at which this process got the lock, in whole milliseconds of the monotonic clock; a hand-off
   *   does not change it
   */
  constructor(
    readonly keeper: LockKeeper,
    attempt: Pick<Attempt, 'type' | 'owner' | 'leaseTime' | 'sent' | 'lateCopiesUntil' | 'permits'> &
      Partial<Pick<Attempt, 'waiterTimeout'>>,
    fixed: boolean,
    { token, reserved }: Pick<Acquired, 'token' | 'reserved'>,
    readonly since: number,
  ) {
    this.type = attempt.type;
    this.owner = attempt.owner;
    this.permits = attempt.permits;
    this.leaseTime = this.validFor = attempt.leaseTime;
    this.fixed = fixed;
    this.lastConfirmed = attempt.sent;
    this.lateCopiesUntil = attempt.lateCopiesUntil;
    this.wouldWait = (attempt.waiterTimeout ?? 0) > 0;
    this.token = token;
    this.block = reserved > 0 ? new TokenBlock(reserved) : undefined;
  }

  get name(): string {
    return this.keeper.name;
  }

  get key(): string {
    return this.keeper.key;
  }

  /** When the lease began: just before this process sent the last confirmed command that set it. */
  get confirmed(): Moment {
    if (this.standby !== undefined) this.standby.catchUp(this);
    return this.lastConfirmed;
  }

  get leaseEnd(): number {
    return this.confirmed.monotonic + this.validFor;
  }

  /** A list that contains only this lock, reused for every lease of the lock. */
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

  /** Forgets all shares at once. The lock then lapses, or goes elsewhere, without them. */
  forgetShares(): void {
    this.shares = NO_SHARES;
  }

  /** Stops renewing the lock, although its body may still run. Its lease is still judged by the clock. */
  abandon(reason: Error): void {
    this.abandoned = reason;
    this.fixed = true;
    this.keeper.forget(this);
  }

  /** Keeps the lock at least until this moment of the monotonic clock. */
  keep(until: number): void {
    this.keepUntil = Math.max(this.keepUntil, until);
  }

  /** Removes one share. Removing the last one frees the lock or hands it off. Returns as {@link LockKeeper.giveBack}. */
  drop(share: LockShare, listener: ReleaseListener, now: Moment): Promise<void> | undefined {
    this.shares = this.shares.length === 1 ? NO_SHARES : this.shares.filter((other) => other !== share);
    if (this.shares.length === 0) return this.keeper.giveBack(this, listener, now);
    return tellOutcome(listener, 'released');
  }

  /** Records that the backend has set the lease to `leaseTime`, by a command that was sent after `sent`. */
  confirm(sent: Moment, leaseTime: number): void {
    this.lastConfirmed = sent;
    this.validFor = leaseTime;
  }

  /** Records that a command about this owner was sent. */
  commandSent(): void {
    this.unanswered++;
  }

  commandSettled(): void {
    this.unanswered--;
  }

  /** Hands the lock off inside this process. Its next lease gets the next reserved token. */
  noteHandOff(): void {
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
