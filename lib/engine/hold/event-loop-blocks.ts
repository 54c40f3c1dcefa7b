import { type Moment, validity } from '../time/lease-clock.js';
import { blockedWarning, type Loss, type LossReason } from './loss-reasons.js';
import type { KeptLeases, Standby } from './standby.js';

/** How long nothing is said about further blocks after a warning, in milliseconds. */
const QUIET = 60_000;

/** What an explanation needs to know of a lease that has ended. */
interface EndedLease {
  readonly fixed: boolean;
  readonly confirmed: Moment;
  readonly validFor: number;
}

/**
 * Notices that the event loop was blocked: the heartbeat of the watchdog is late by more than a third of the lease. The
 * log warns about that, once a minute at most. If something is lost, the error names the last block.
 */
export class EventLoopBlocks {
  /** When the last block began and ended, on the monotonic clock. */
  private from = 0;
  private until = 0;
  private quietUntil = Number.NEGATIVE_INFINITY;

  /**
   * @param leaseTime the lease of everything that is renewed, in milliseconds
   * @param warn writes to the log
   * @param standby what renews meanwhile
   * @param onKept called after a block, with what was renewed
   */
  constructor(
    private readonly leaseTime: number,
    private readonly warn: (message: string) => void,
    private readonly standby?: Standby,
    private readonly onKept: (blockedFor: number, kept: KeptLeases) => void = () => {},
  ) {}

  /** The heartbeat was due at `due`, and it is `now`, on the monotonic clock. */
  compare(due: number, now: number): void {
    if (now - due > this.leaseTime / 3) this.wasBlocked(due, now);
  }

  /** Why a lease was not renewed before its end. */
  explain({ fixed, confirmed: { monotonic }, validFor }: EndedLease, noticed: LossReason, error?: Error): Loss {
    const { from, until } = this;
    const blockedFor = until > monotonic ? until - from : undefined;
    if (fixed) return { reason: noticed === 'ended-unnoticed' ? noticed : 'ended', blockedFor };
    const deadline = monotonic + validity(validFor);
    // A renewal that had failed says more than a block that came after it.
    if (blockedFor !== undefined && error === undefined && until >= deadline) return { reason: 'blocked', blockedFor };
    const reason = noticed === 'unanswered' || noticed === 'failed' ? noticed : 'too-late';
    return { reason, error, blockedFor };
  }

  private wasBlocked(from: number, until: number): void {
    const isKnown = from === this.from;
    this.from = from;
    this.until = until;
    const kept = isKnown ? undefined : this.standby?.keptSince(from);
    if (kept !== undefined) this.onKept(until - from, kept);
    const isOver = kept !== undefined && until - from > kept.longest;
    if (until < this.quietUntil && !isOver) return;
    this.quietUntil = until + QUIET;
    this.warn(blockedWarning(until - from, this.leaseTime, kept, this.standby?.problem));
  }
}
