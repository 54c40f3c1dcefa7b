/** How many old entries are checked for each new one. With two, the sweep is faster than the growth. */
const SWEPT_PER_NEW_ENTRY = 2;

/**
 * A map whose entries expire. Expired entries are removed when they are looked up. Adding an entry also checks a few
 * old ones. This limits the map to a small multiple of its live entries, and needs no timer. Entries keep the order in
 * which their keys were added.
 */
export class ExpiringMap<V> {
  private readonly entries = new Map<string, V>();
  private sweep = this.entries.entries();

  constructor(
    private readonly isExpired: (value: V, now: number, key: string) => boolean,
    private readonly onExpire?: (value: V) => void,
  ) {}

  /** Includes expired entries that have not been swept yet. */
  get size(): number {
    return this.entries.size;
  }

  /** Also true for an expired entry that has not been removed yet. */
  has(key: string): boolean {
    return this.entries.has(key);
  }

  get(key: string, now: number): V | undefined {
    const value = this.entries.get(key);
    if (value === undefined || !this.isExpired(value, now, key)) return value;
    this.expire(key, value);
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

  /** The oldest live entry. */
  first(now: number): readonly [key: string, value: V] | undefined {
    for (const entry of this.entries) {
      if (!this.isExpired(entry[1], now, entry[0])) return entry;
      this.expire(entry[0], entry[1]);
    }
    return undefined;
  }

  /** All live entries, the oldest first. */
  alive(now: number): [key: string, value: V][] {
    return [...this.entries].filter(([key, value]) => !this.isExpired(value, now, key));
  }

  /** The oldest live entries, at most `count`. */
  oldest(count: number, now: number): [key: string, value: V][] {
    const found: [key: string, value: V][] = [];
    for (const entry of this.entries) {
      if (found.length === count) break;
      if (!this.isExpired(entry[1], now, entry[0])) found.push(entry);
    }
    return found;
  }

  private expire(key: string, value: V): void {
    this.entries.delete(key);
    this.onExpire?.(value);
  }

  private sweepSome(now: number): void {
    for (let swept = 0; swept < SWEPT_PER_NEW_ENTRY; swept++) {
      const next = this.sweep.next();
      if (next.done) {
        this.sweep = this.entries.entries();
        return;
      }
      const [key, value] = next.value;
      if (this.isExpired(value, now, key)) this.expire(key, value);
    }
  }
}
