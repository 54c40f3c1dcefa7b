import { ExpiringMap } from '../../../../lib/backends/expiring-map.js';
import type { Acquired, HeldType } from '../../../../lib/backends/lock-requests.js';

/** How far, in µs, reserved tokens may run ahead of the wall clock. */
const MAX_LEAD = 100_000;

/**
 * How far, in µs, a new clock starts ahead of the wall clock, so that it is above all tokens of an earlier clock whose
 * data was lost.
 */
const FIRST_LEAD = 150_000;

/** How long, in µs, a free lock keeps its own clock. */
const KEEP_TIME = 60_000_000;

/**
 * A hybrid logical clock: each token is the wall clock in µs, or one more than the last token, whichever is larger.
 *
 * @see Kulkarni, Demirbas et al., "Logical Physical Clocks", 2014
 */
export class FencingClock {
  constructor(public last: number) {}

  next(wallMicros: number, reserve: number): Acquired {
    const token = Math.max(this.last + 1, this.last === 0 ? wallMicros + FIRST_LEAD : wallMicros);
    const reserved = Math.max(0, Math.min(reserve, wallMicros + MAX_LEAD - token));
    this.last = token + reserved;
    return { acquired: true, token, reserved };
  }

  raise(token: number, wallMicros: number): void {
    this.last = Math.max(token, this.last === 0 ? wallMicros + FIRST_LEAD : this.last);
  }
}

/**
 * The clocks of one store: one for all locks, and one for each `fenced` lock. Clocks that nobody uses are dropped;
 * their highest token is remembered for all of them, so that the next token of such a lock is higher even if the wall
 * clock was set back.
 */
export class FencingClocks {
  private readonly shared = new FencingClock(0);
  private forgotten = 0;
  private readonly fenced = new ExpiringMap<FencingClock>(
    (clock, wallMicros, key) => clock.last < wallMicros - KEEP_TIME && !this.isHeld(key),
    (clock) => {
      this.forgotten = Math.max(this.forgotten, clock.last);
    },
  );

  constructor(private readonly isHeld: (key: string) => boolean) {}

  /** The token of an acquisition, and as many reserved tokens as it may have. */
  next(key: string, type: HeldType, reserve: number, wallMicros: number): Acquired {
    return this.use(key, type, wallMicros, (clock) => clock.next(wallMicros, reserve));
  }

  /** The time by the shared clock, in µs, without a token. */
  now(wallMicros: number): number {
    return Math.max(this.shared.last, wallMicros);
  }

  /** Makes the next token of this lock higher than `token`, unless it already would be. */
  raise(key: string, type: HeldType, token: number, wallMicros: number): void {
    this.use(key, type, wallMicros, (clock) => clock.raise(token, wallMicros));
  }

  lastOf(key: string, wallMicros: number): number | undefined {
    return this.fenced.get(key, wallMicros)?.last;
  }

  /**
   * A new fenced clock starts above the shared one. It is used before it is stored, because a clock that lags behind
   * would be swept at once.
   */
  private use<T>(key: string, type: HeldType, wallMicros: number, work: (clock: FencingClock) => T): T {
    if (type !== 'fenced') return work(this.shared);
    const known = this.fenced.get(key, wallMicros);
    const clock = known ?? new FencingClock(Math.max(this.forgotten, this.shared.next(wallMicros, 0).token));
    const result = work(clock);
    if (known === undefined) this.fenced.set(key, clock, wallMicros);
    return result;
  }
}
