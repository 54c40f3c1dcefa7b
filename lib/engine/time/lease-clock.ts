import { type Moment, momentOf, type Runtime } from '../../backends/runtime.js';

export type { Moment } from '../../backends/runtime.js';

/** How far the two clocks may diverge before neither is trusted, in milliseconds. */
const DIVERGENCE = 1_000;
/**
 * How many milliseconds the wall clock may gain on the monotonic clock, which timers use, before timers count as late.
 */
const TIMER_LAG = 10;

/**
 * The age of a lease, by this process's clocks alone. The monotonic clock may stop while a machine is suspended, and
 * someone may change the wall clock. So the larger of the two ages counts, and when they diverge by over a second, the
 * lease has to be confirmed.
 */
export class LeaseClock {
  constructor(private readonly runtime: Runtime) {}

  now(): Moment {
    return momentOf(this.runtime);
  }

  /** @param now the current moment, to save reading the clocks again */
  age(since: Moment, now?: Moment): number {
    const { runtime } = this;
    const monotonic = now === undefined ? runtime.monotonic() : now.monotonic;
    const wall = now === undefined ? runtime.wall() : now.wall;
    return Math.max(monotonic - since.monotonic, wall - since.wall);
  }

  /**
   * Milliseconds for which a lease is certainly held. From 0 on down, it may have ended.
   *
   * @param since just before the command was sent that began the lease
   */
  left(since: Moment, leaseTime: number, now?: Moment): number {
    return validity(leaseTime) - this.age(since, now);
  }

  /** A moment that is certainly not later than `duration` ms after `since` by the backend's clock. */
  after({ monotonic, wall }: Moment, duration: number): Moment {
    const certain = Math.max(0, validity(duration));
    return { monotonic: monotonic + certain, wall: wall + certain };
  }

  diverged(since: Moment): boolean {
    return Math.abs(this.wallGain(since)) > DIVERGENCE;
  }

  /**
   * True if timers set before `since` would fire too late for leases, because the machine was suspended or the wall
   * clock was moved forward.
   */
  timersLag(since: Moment): boolean {
    return this.wallGain(since) > TIMER_LAG;
  }

  /** How many milliseconds more the wall clock has advanced than the monotonic clock. */
  private wallGain(since: Moment): number {
    const monotonic = this.runtime.monotonic() - since.monotonic;
    return this.runtime.wall() - since.wall - monotonic;
  }
}

/**
 * The part of a lease that is certain despite clock drift between this machine and the server. Redlock's margin is 1 %
 * plus 2 ms.
 */
export function validity(leaseTime: number): number {
  return leaseTime - leaseTime * 0.01 - 2;
}
