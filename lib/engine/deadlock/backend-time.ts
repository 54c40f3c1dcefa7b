import type { Runtime } from '../../backends/runtime.js';
import type { WaitBackend } from '../../backends/wait-backend.js';
import type { NestedWait } from './nested-wait.js';

/** The backend is asked for its time again after so many milliseconds. */
const LIFETIME = 10_000;
/** An answer that took longer says too little about when it was given, unless none of several is quicker. In milliseconds. */
const QUICK = 20;
const MOST_TRIES = 3;

/** Dates waits by the backend's time, which all processes have in common. */
export class BackendTime {
  /** What the backend's time is ahead of the monotonic clock. */
  private offset = 0;
  private asked = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly backend: WaitBackend,
    private readonly runtime: Runtime,
  ) {}

  /** Dates the waits that have no date yet. */
  async date(waits: readonly NestedWait[]): Promise<void> {
    const undated = waits.filter(({ began }) => began === undefined);
    if (undated.length === 0) return;
    await this.refresh(undated[0]);
    for (const wait of undated) wait.began = wait.since + this.offset;
  }

  private async refresh({ locks, id }: NestedWait): Promise<void> {
    const { backend, runtime } = this;
    if (runtime.monotonic() - this.asked < LIFETIME) return;
    let quickest = Number.POSITIVE_INFINITY;
    for (let n = 0; n < MOST_TRIES && quickest > QUICK; n++) {
      const before = runtime.monotonic();
      const time = await backend.time(locks[0]?.owner ?? id);
      const after = runtime.monotonic();
      if (after - before >= quickest) continue;
      quickest = after - before;
      this.offset = time - (before + after) / 2;
    }
    this.asked = runtime.monotonic();
  }
}
