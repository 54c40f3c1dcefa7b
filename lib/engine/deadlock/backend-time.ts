import type { Runtime } from '../../backends/runtime.js';
import type { WaitBackend } from '../../backends/wait-backend.js';
import type { NestedWait } from './nested-wait.js';

/** How often the backend is asked for its time, in milliseconds. */
const LIFETIME = 10_000;
/**
 * After an answer that took longer than this, in milliseconds, the backend is asked again. The smallest of several
 * offsets is the most accurate.
 */
const QUICK = 20;
const MOST_TRIES = 3;

/** Dates waits by the backend's time, which is the same for all processes. */
export class BackendTime {
  /** How far the backend's time is ahead of the monotonic clock, in milliseconds. */
  private offset = 0;
  private asked = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly backend: WaitBackend,
    private readonly runtime: Runtime,
  ) {}

  /** The backend's time. Valid once {@link date} has dated a wait. */
  now(): number {
    return this.runtime.monotonic() + this.offset;
  }

  /** Dates the waits that have no date yet. */
  async date(waits: readonly NestedWait[]): Promise<void> {
    const undated = waits.filter(({ began }) => began === undefined);
    if (undated.length === 0) return;
    await this.refresh(undated[0]);
    for (const wait of undated) wait.date(wait.since + this.offset);
  }

  private async refresh({ locks, id }: NestedWait): Promise<void> {
    const { backend, runtime } = this;
    if (runtime.monotonic() - this.asked < LIFETIME) return;
    let least = Number.POSITIVE_INFINITY;
    for (let n = 0, isQuick = false; n < MOST_TRIES && !isQuick; n++) {
      const before = runtime.monotonic();
      least = Math.min(least, await backend.clockOffset(locks[0]?.owner ?? id));
      isQuick = runtime.monotonic() - before <= QUICK;
    }
    this.offset = least;
    this.asked = runtime.monotonic();
  }
}
