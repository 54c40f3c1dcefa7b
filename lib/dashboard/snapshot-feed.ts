import type { Snapshot } from './board-lock.js';

/** The shortest time between two snapshots, in milliseconds. */
const SHORTEST_PAUSE = 1_000;
/** After one that took long, the pause is so many times as long: reading takes a fifth of the time at most. */
const REST = 4;

const EMPTY: Snapshot = { at: 0, took: 0, locks: [], clients: [], incomplete: false, outage: null };

/** Takes the snapshots for all who look: one at a time, one a second at most, none while nobody looks. */
export class SnapshotFeed {
  private readonly listeners = new Set<(snapshot: Snapshot) => void>();
  private latest: Snapshot | undefined;
  private nextAt = 0;
  private taking: Promise<Snapshot> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  /** @param take given the latest snapshot */
  constructor(private readonly take: (before: Snapshot | undefined) => Promise<Snapshot>) {}

  /** The latest snapshot, or a new one if that is old. Never rejects: an outage is what a snapshot shows. */
  current(): Promise<Snapshot> {
    if (this.taking !== undefined) return this.taking;
    if (this.latest !== undefined && performance.now() < this.nextAt) return Promise.resolve(this.latest);
    this.taking = this.takeNext();
    return this.taking;
  }

  /**
   * Calls the listener with each new snapshot, and first with the latest.
   *
   * @returns a function that removes the listener
   */
  follow(listener: (snapshot: Snapshot) => void): () => void {
    this.listeners.add(listener);
    void this.current().then((snapshot) => {
      if (this.listeners.has(listener)) listener(snapshot);
      this.schedule();
    });
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

  private async takeNext(): Promise<Snapshot> {
    const { latest } = this;
    const started = performance.now();
    try {
      this.latest = await this.take(latest);
    } catch (error) {
      const since = latest?.outage?.since ?? Date.now();
      this.latest = { ...(latest ?? EMPTY), outage: { message: (error as Error).message, since } };
    }
    const ended = performance.now();
    this.nextAt = ended + Math.max(SHORTEST_PAUSE - (ended - started), REST * (ended - started));
    this.taking = undefined;
    return this.latest;
  }

  private schedule(): void {
    if (this.timer !== undefined || this.listeners.size === 0 || this.closed) return;
    this.timer = setTimeout(() => this.tick(), Math.max(1, this.nextAt - performance.now()));
    this.timer.unref();
  }

  private async tick(): Promise<void> {
    const snapshot = await this.current();
    this.timer = undefined;
    for (const listener of [...this.listeners]) listener(snapshot);
    this.schedule();
  }

  private stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
