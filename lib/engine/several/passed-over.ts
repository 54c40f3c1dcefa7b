import type { Runtime } from '../../backends/runtime.js';

/** A caller whose attempts have failed so often, or for so many milliseconds, was passed over for long. */
const FAILED_ATTEMPTS = 5;
const FAILED_FOR = 2_000;

/** How long a caller that was passed over for long may hold locks while it waits for others, in milliseconds. */
export const LONGEST_HOLD = 1_000;

/**
 * Decides when a caller of several locks may hold some of them while it waits for others. It begins with the first attempt: a caller
 * that is served soon never holds and waits, so that no order of locks can deadlock.
 */
export class PassedOver {
  private failures = 0;
  private readonly since: number;

  constructor(private readonly runtime: Runtime) {
    this.since = runtime.monotonic();
  }

  /** @returns how many attempts had failed before this one */
  attemptFailed(): number {
    return this.failures++;
  }

  get forLong(): boolean {
    return this.failures >= FAILED_ATTEMPTS || this.runtime.monotonic() - this.since >= FAILED_FOR;
  }
}

/**
 * How long a caller that held locks in vain does without: at least as long as it held them, and longer by chance, because two callers
 * that keep step could obstruct each other for ever.
 */
export function pauseAfterHold(runtime: Runtime, hold: number): number {
  return hold * (1 + runtime.random() / 2);
}
