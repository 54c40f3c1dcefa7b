/** How many old entries each new one has to look at: two, so that the sweep overtakes the growth. */
const SWEPT_PER_NEW_ENTRY = 2;

/** For maps whose values are the deadlines themselves. */
export const isPast = (deadline: number, now: number): boolean => deadline <= now;

/** The entry with the latest of some deadlines; there must be one. */
export function lastOf(deadlines: readonly (readonly [key: string, deadline: number])[]): readonly [string, number] {
  return deadlines.reduce((last, entry) => (entry[1] > last[1] ? entry : last));
}

/**
 * A map whose entries end by themselves. They are dropped when somebody looks at them; those that nobody asks for again
 * are swept, a few for each new one, so that the map stays within a small multiple of what is alive, without a timer.
 * Entries stand in the order in which their keys came.
 */
export class LapsingMap<V> {
  private readonly entries = new Map<string, V>();
  private sweep = this.entries.entries();

  constructor(
    private readonly isOver: (value: V, now: number, key: string) => boolean,
    private readonly onLapse?: (value: V) => void,
  ) {}

  /** Lapsed entries that were not swept yet included. */
  get size(): number {
    return this.entries.size;
  }

  /** Also true of an entry that has lapsed and was not looked at since. */
  has(key: string): boolean {
    return this.entries.has(key);
  }

  get(key: string, now: number): V | undefined {
    const value = this.entries.get(key);
    if (value === undefined || !this.isOver(value, now, key)) return value;
    this.lapse(key, value);
    return undefined;
  }

  set(key: string, value: V, now: number): void {
    const before = this.entries.size;
    this.entries.set(key, value);
    if (this.entries.size > before) this.sweepSome(now);
  }

  delete(key: string): boolean {
    return this.entries.delete(key);
  }

  /** The oldest entry that is alive. */
  first(now: number): readonly [key: string, value: V] | undefined {
    for (const entry of this.entries) {
      if (!this.isOver(entry[1], now, entry[0])) return entry;
      this.lapse(entry[0], entry[1]);
    }
    return undefined;
  }

  /** All that are alive, the oldest first. */
  alive(now: number): [key: string, value: V][] {
    return [...this.entries].filter(([key, value]) => !this.isOver(value, now, key));
  }

  private lapse(key: string, value: V): void {
    this.entries.delete(key);
    this.onLapse?.(value);
  }

  private sweepSome(now: number): void {
    for (let looked = 0; looked < SWEPT_PER_NEW_ENTRY; looked++) {
      const next = this.sweep.next();
      if (next.done) {
        this.sweep = this.entries.entries();
        return;
      }
      const [key, value] = next.value;
      if (this.isOver(value, now, key)) this.lapse(key, value);
    }
  }
}
