import type { HeldType } from '../../backends/lock-backend.js';
import type { LockLogger } from '../events/lock-logger.js';
import type { Moment } from '../time/lease-clock.js';

/** A lease that the watchdog renews, as a {@link Standby} sees it. */
export interface KeptLease {
  readonly name: string;
  readonly key: string;
  /** `semaphore`: a permit, whose owner is its id. */
  readonly type: HeldType | 'semaphore';
  readonly owner: string;
  readonly leaseTime: number;
  readonly validFor: number;
  /** When the lease ends unless it is confirmed again, on the monotonic clock. */
  readonly leaseEnd: number;
  readonly lost: Error | undefined;
  confirm(sent: Moment, leaseTime: number): void;
  /** The standby that keeps it, and where. */
  standby: Standby | undefined;
  slot: number;
}

/** What a standby did while the event loop was blocked. */
export interface KeptLeases {
  readonly count: number;
  /** Some of their names. */
  readonly names: readonly string[];
  /** Milliseconds for which the first of them to end is still held. */
  readonly remainingTime: number;
  /** How long the standby renews at most, in milliseconds. */
  readonly longest: number;
}

/**
 * Renews leases while the event loop of this process is blocked: a thread, see lib/standby. For the engine, a lease that
 * it has renewed was confirmed, by a request that somebody else sent.
 */
export interface Standby {
  /** Counts what it has said so far. */
  readonly changes: number;
  /** Why it could not renew anything now; undefined: it could. */
  readonly problem: string | undefined;
  /** The event loop is alive. */
  beat(now: Moment): void;
  /** Keeps a lease that has just been acquired. */
  guard(lease: KeptLease, now: Moment): void;
  /** Keeps a lease no longer. */
  drop(lease: KeptLease): void;
  /** The loop has confirmed a lease. */
  confirmed(lease: KeptLease): void;
  /** Nobody renews the lease after this moment of the monotonic clock. Undefined: there is no limit. */
  limit(lease: KeptLease, until: number | undefined): void;
  /**
   * Drops a lease that is about to become shorter.
   *
   * @returns settles when no renewal is under way that would lengthen it again; undefined: there is none
   */
  withdraw(lease: KeptLease): Promise<void> | undefined;
  /** Lets a lease know what was confirmed. Costs next to nothing if nothing was said. */
  catchUp(lease: KeptLease): void;
  /** The same for all leases. */
  catchUpAll(): void;
  /** Whether the backend did not hold a lease any more when it was renewed. */
  foundGone(lease: KeptLease): boolean;
  /** What was renewed since a moment of the monotonic clock. */
  keptSince(moment: number): KeptLeases;
  /** Starts to report to this log. Settles when the standby is ready. @throws LockConfigurationError */
  start(logger: LockLogger): Promise<void>;
  close(): void;
}
