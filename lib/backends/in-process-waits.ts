import { ExpiringMap } from './expiring-map.js';
import type { WaitBackend, WaitChange } from './wait-backend.js';

/** The waits of one owner. */
interface KeptWaits {
  readonly waits: ReadonlyMap<string, string>;
  readonly until: number;
}

/** Waits by owner, with a lifetime. Services that share a store see each other's waits. @publicApi */
export class WaitStore {
  private readonly kept = new ExpiringMap<KeptWaits>(({ until }, now) => until <= now);

  get(holder: string, now: number): ReadonlyMap<string, string> {
    return this.kept.get(holder, now)?.waits ?? new Map();
  }

  change({ holder, waiting, ended }: WaitChange, until: number, now: number): void {
    const waits = new Map([...this.get(holder, now), ...waiting]);
    for (const wait of ended) waits.delete(wait);
    if (waits.size === 0) this.kept.delete(holder);
    else this.kept.set(holder, { waits, until }, now);
  }
}

/**
 * Finds deadlocks among the callers of one process, for backends that keep their locks in the process or cannot store
 * waits.
 *
 * @publicApi
 */
export class InProcessWaits implements WaitBackend {
  /**
   * @param now milliseconds, by the clock of the store; throws when the backend is closed
   * @param monotonic the clock of the process
   * @param holders see {@link WaitBackend.holders}
   */
  constructor(
    private readonly store: WaitStore,
    private readonly now: () => number,
    private readonly monotonic: () => number,
    readonly holders: (key: string) => Promise<readonly string[]>,
  ) {}

  async clockOffset(): Promise<number> {
    return this.now() - this.monotonic();
  }

  async write(changes: readonly WaitChange[], lifetime: number): Promise<void> {
    const now = this.now();
    for (const change of changes) this.store.change(change, now + lifetime, now);
  }

  async read(holders: readonly string[]): Promise<readonly ReadonlyMap<string, string>[]> {
    const now = this.now();
    return holders.map((holder) => this.store.get(holder, now));
  }
}
