import type { WaitBackend, WaitChange } from '../../backends/wait-backend.js';
import type { NestedWait } from './nested-wait.js';

/** How long a wait is kept without being written again, in milliseconds. */
const LIFETIME = 2_000;

/** Records the waits of one service's callers in the backend, under the owners that the callers hold. */
export class WaitJournal {
  /** The ids of the waits written last, by the holders under which they were written. */
  private written = new Map<string, ReadonlySet<string>>();

  constructor(private readonly backend: WaitBackend) {}

  get isEmpty(): boolean {
    return this.written.size === 0;
  }

  /**
   * Removes waits that have just ended, because other callers could still be refused because of them. If the removal
   * fails or is overtaken, the next {@link write} repeats it.
   */
  remove(ids: ReadonlySet<string>): void {
    const changes: WaitChange[] = [];
    for (const [holder, written] of this.written) {
      const ended = [...written].filter((id) => ids.has(id));
      if (ended.length > 0) changes.push({ holder, waiting: new Map(), ended });
    }
    if (changes.length > 0) this.backend.write(changes, LIFETIME).catch(() => {});
  }

  /** Writes these waits, which continue, and removes all others. */
  async write(waits: readonly NestedWait[]): Promise<void> {
    const waiting = byHolder(waits);
    const before = this.written;
    this.written = new Map([...waiting].map(([holder, records]) => [holder, new Set(records.keys())]));
    const changes: WaitChange[] = [];
    for (const holder of new Set([...waiting.keys(), ...before.keys()])) {
      const records = waiting.get(holder) ?? new Map<string, string>();
      const ended = [...(before.get(holder) ?? [])].filter((id) => !records.has(id));
      changes.push({ holder, waiting: records, ended });
    }
    if (changes.length === 0) return;
    try {
      await this.backend.write(changes, LIFETIME);
    } catch (error) {
      this.written = merged(before, this.written); // the backend may still store ended waits
      throw error;
    }
  }
}

function merged(...all: readonly ReadonlyMap<string, ReadonlySet<string>>[]): Map<string, ReadonlySet<string>> {
  const sum = new Map<string, ReadonlySet<string>>();
  for (const [holder, ids] of all.flatMap((written) => [...written])) {
    sum.set(holder, new Set([...(sum.get(holder) ?? []), ...ids]));
  }
  return sum;
}

function byHolder(waits: readonly NestedWait[]): Map<string, Map<string, string>> {
  const all = new Map<string, Map<string, string>>();
  for (const wait of waits) {
    wait.beat++;
    const text = JSON.stringify(wait.record);
    for (const holder of wait.holds) {
      const records = all.get(holder) ?? new Map<string, string>();
      all.set(holder, records.set(wait.id, text));
    }
  }
  return all;
}
