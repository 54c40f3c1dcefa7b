import type { Acquired } from '../lock-backend.js';
import { LapsingMap } from './lapsing-map.js';

/** How far, in µs, tokens that were reserved may run ahead of the wall clock. */
const MAX_LEAD = 1_000_000;

/** How long, in µs, a lock that is not acquired keeps its own last token. */
const KEPT = 60_000_000;

/**
 * A hybrid logical clock: it shows the wall clock in µs, or one more than it showed last, whichever is more.
 *
 * @see Kulkarni, Demirbas et al., "Logical Physical Clocks", 2014
 */
export class FencingClock {
  constructor(public last: number) {}

  draw(wallMicros: number, reserve: number): Acquired {
    const token = Math.max(this.last + 1, wallMicros);
    const reserved = Math.max(0, Math.min(reserve, wallMicros + MAX_LEAD - token));
    this.last = token + reserved;
    return { acquired: true, token, reserved };
  }
}

/**
 * The clocks of one store: one for all locks, and one of its own for each `fenced` lock. Of those that nobody uses, the
 * highest token is remembered for all, so that the next one of such a lock is higher even if the wall clock was set back.
 */
export class FencingClocks {
  readonly shared = new FencingClock(0);
  private forgotten = 0;
  private readonly fenced = new LapsingMap<FencingClock>(
    (clock, wallMicros) => clock.last < wallMicros - KEPT,
    (clock) => {
      this.forgotten = Math.max(this.forgotten, clock.last);
    },
  );

  of(key: string, wallMicros: number): FencingClock {
    let clock = this.fenced.get(key, wallMicros);
    if (clock === undefined) {
      clock = new FencingClock(this.forgotten);
      this.fenced.set(key, clock, wallMicros);
    }
    return clock;
  }

  lastOf(key: string, wallMicros: number): number | undefined {
    return this.fenced.get(key, wallMicros)?.last;
  }
}
