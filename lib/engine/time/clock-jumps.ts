import type { LeaseClock, Moment } from './lease-clock.js';

/** What has happened to the clocks since they were compared last. */
export interface ClockChange {
  /** Whether timers would fire too late for leases. */
  readonly timersLag: boolean;
  /** Whether the clocks have diverged so far that leases have to be confirmed. */
  readonly diverged: boolean;
}

const NO_CHANGE: ClockChange = { timersLag: false, diverged: false };

/**
 * Detects that the machine was suspended, or that its wall clock was changed. Timers do not react to either, although
 * leases may end in the meantime. The watchdog compares the clocks at each heartbeat.
 */
export class ClockJumps {
  /** When the clocks were compared last. */
  private last: Moment | undefined;
  /** When they were last seen to diverge, on the monotonic clock. */
  private seenAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly clock: LeaseClock) {}

  /** Begins to compare the clocks, unless it has begun already. */
  start(from: Moment): void {
    this.last ??= from;
  }

  stop(): void {
    this.last = undefined;
  }

  /** Compares the clocks with what they showed last time. */
  compare(): ClockChange {
    const { clock, last } = this;
    const now = clock.now();
    this.last = now;
    if (last === undefined) return NO_CHANGE;
    const diverged = clock.diverged(last);
    if (diverged) this.seenAt = now.monotonic;
    return { timersLag: clock.timersLag(last), diverged };
  }

  /**
   * Whether the clocks have diverged after this moment. A command that was sent earlier proves nothing about the time
   * since.
   */
  haveHappenedSince(moment: Moment): boolean {
    return moment.monotonic < this.seenAt;
  }
}
