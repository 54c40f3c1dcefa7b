import type { Snapshot } from './board-snapshot.js';

/** The shortest time between two snapshots, in milliseconds. */
const SHORTEST_PAUSE = 1_000;
/**
 * The pause after a slow snapshot is this many times as long as the snapshot took, so that snapshots take at most a
 * fifth of the time.
 */
const REST = 4;

const EMPTY: Snapshot = {
  at: 0,
  took: 0,
  locks: [],
  synchronizers: [],
  results: [],
  clients: [],
  incomplete: false,
  outage: null,
};

/** Takes the snapshots for all viewers, one at a time and at most one a second. Without viewers, it takes none. */
export class SnapshotFeed {
  private readonly listeners = new Set<(snapshot: Snapshot) => void>();
  private taken: Snapshot | undefined;
  private nextAt = 0;
  private taking: Promise<Snapshot> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  /** @param take takes a new snapshot; its argument is the previous one */
  constructor(private readonly take: (before: Snapshot | undefined) => Promise<Snapshot>) {}

  /** The latest snapshot. */
  get latest(): Snapshot {
    return this.taken ?? EMPTY;
  }

  /** The latest snapshot if it is fresh, otherwise a new one. Never rejects, because a snapshot can show an outage. */
  current(): Promise<Snapshot> {
    if (this.taken !== undefined && this.taking === undefined && performance.now() < this.nextAt)
      return Promise.resolve(this.taken);
    return this.next();
  }

  /**
   * Calls the listener with the latest snapshot if it is fresh, and then with each new one.
   *
   * @returns a function that removes the listener
   */
  follow(listener: (snapshot: Snapshot) => void): () => void {
    this.listeners.add(listener);
    if (this.taken !== undefined && performance.now() < this.nextAt) notify(listener, this.taken);
    else this.takeInBackground();
    this.schedule();
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) this.stop();
    };
  }

  close(): void {
    this.closed = true;
    this.listeners.clear();
    this.stop();
  }

  private takeInBackground(): void {
    this.next().catch(() => {}); // the next snapshot may succeed
  }

  private next(): Promise<Snapshot> {
    this.taking ??= this.takeNext();
    return this.taking;
  }

  private async takeNext(): Promise<Snapshot> {
    const latest = this.taken;
    const started = performance.now();
    let rest = REST;
    try {
      this.taken = await this.take(latest);
    } catch (error) {
      // Waiting for an answer costs nothing, and the page should soon show that Redis answers again.
      rest = 0;
      const since = latest?.outage?.since ?? Date.now();
      this.taken = { ...(latest ?? EMPTY), outage: { message: (error as Error).message, since } };
    }
    const took = performance.now() - started;
    this.nextAt = started + took + Math.max(SHORTEST_PAUSE - took, rest * took);
    this.taking = undefined;
    for (const listener of [...this.listeners]) notify(listener, this.latest);
    this.schedule();
    return this.taken;
  }

  /** Schedules the next snapshot. If one is being taken, this is called again when it ends. */
  private schedule(): void {
    this.stop();
    if (this.taking !== undefined || this.listeners.size === 0 || this.closed) return;
    this.timer = setTimeout(() => this.takeInBackground(), Math.max(1, this.nextAt - performance.now()));
    this.timer.unref();
  }

  private stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}

/** An error with one viewer must not affect the others. */
function notify(listener: (snapshot: Snapshot) => void, snapshot: Snapshot): void {
  try {
    listener(snapshot);
  } catch {
    // The next snapshot may reach this viewer.
  }
}
