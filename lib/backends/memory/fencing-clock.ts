import type { Acquired, LockType } from '../lock-backend.js';
import { LapsingMap } from './lapsing-map.js';

/** How far, in µs, tokens that were reserved may run ahead of the wall clock. */
const MOST_LEAD = 100_000;

/** How far, in µs, a clock starts ahead that is not there yet: above all that one may have given whose data was lost. */
const FIRST_LEAD = 150_000;

/** How long, in µs, a free lock keeps its own last token. */
const KEPT = 60_000_000;

/**
 * A hybrid logical clock: it shows the wall clock in µs, or one more than it showed last, whichever is more.
 *
 * @see Kulkarni, Demirbas et al., "Logical Physical Clocks", 2014
 */
export class FencingClock {
  constructor(public last: number) {}

  draw(wallMicros: number, reserve: number): Acquired {
    const token = Math.max(this.last + 1, this.last === 0 ? wallMicros + FIRST_LEAD : wallMicros);
    const reserved = Math.max(0, Math.min(reserve, wallMicros + MOST_LEAD - token));
    this.last = token + reserved;
    return { acquired: true, token, reserved };
  }

  raise(token: number): void {
    this.last = Math.max(this.last, token);
  }
}

/**
 * The clocks of one store: one for all locks, and one of its own for each `fenced` lock. Of those that nobody uses, the
 * highest token is remembered for all of them, so that the next one of such a lock is higher even if the wall clock was set back.
 */
export class FencingClocks {
  private readonly shared = new FencingClock(0);
  private forgotten = 0;
  private readonly fenced = new LapsingMap<FencingClock>(
    (clock, wallMicros, key) => clock.last < wallMicros - KEPT && !this.isHeld(key),
    (clock) => {
      this.forgotten = Math.max(this.forgotten, clock.last);
    },
  );

  constructor(private readonly isHeld: (key: string) => boolean) {}

  /** The token of an acquisition, and as many more as it may have of those that it asks to reserve. */
  draw(key: string, type: LockType, reserve: number, wallMicros: number): Acquired {
    return this.use(key, type, wallMicros, (clock) => clock.draw(wallMicros, reserve));
  }

  /** The tokens of this lock go on from here, if they are not further already. */
  raise(key: string, type: LockType, token: number, wallMicros: number): void {
    this.use(key, type, wallMicros, (clock) => clock.raise(token));
  }

  lastOf(key: string, wallMicros: number): number | undefined {
    return this.fenced.get(key, wallMicros)?.last;
  }

  /** A fenced lock's own clock starts above the shared one. It is set before it is kept: one that is behind would be swept at once. */
  private use<T>(key: string, type: LockType, wallMicros: number, work: (clock: FencingClock) => T): T {
    if (type !== 'fenced') return work(this.shared);
    const known = this.fenced.get(key, wallMicros);
    const clock = known ?? new FencingClock(Math.max(this.forgotten, this.shared.draw(wallMicros, 0).token));
    const result = work(clock);
    if (known === undefined) this.fenced.set(key, clock, wallMicros);
    return result;
  }
}
