import { keyPage } from '../../../../lib/backends/directory/key-page.js';
import {
  agedRecord,
  type ClientRecord,
  type KeyPage,
  type LockDirectory,
} from '../../../../lib/backends/lock-directory.js';
import type { MemoryStore } from './memory-store.js';

/** The {@link LockDirectory} of one process. Pages are in the order of the keys. */
export class MemoryDirectory implements LockDirectory {
  constructor(
    private readonly store: MemoryStore,
    private readonly now: () => number,
  ) {}

  async list(prefix: string, match: string, cursor: string | undefined, count: number): Promise<KeyPage | undefined> {
    const { locks, synchronizers, flights } = this.store;
    const now = this.now();
    const keys = new Set(locks.alive(now).map(([key]) => key));
    const results = new Set(flights.results.alive(now).map(([key]) => key));
    const all = new Set([...keys, ...synchronizers.notes.keys(), ...results]);
    const page = keyPage([...all], prefix, match, cursor, count);
    if (page === undefined) return undefined;
    const isNoted = (key: string) => synchronizers.notes.has(key);
    return {
      keys: page.keys.filter((key) => keys.has(key) && !isNoted(key)),
      synchronizers: page.keys.filter(isNoted),
      results: page.keys.filter((key) => results.has(key)),
      cursor: page.cursor,
    };
  }

  async writeClient(record: ClientRecord, lifetime: number): Promise<void> {
    const now = this.now();
    this.store.clients.set(record.clientId, { record, at: now, until: now + lifetime }, now);
  }

  async client(clientId: string): Promise<ClientRecord | undefined> {
    const now = this.now();
    const written = this.store.clients.get(clientId, now);
    return written && agedRecord(written.record, now - written.at);
  }

  async clients(): Promise<readonly ClientRecord[]> {
    const now = this.now();
    return this.store.clients.alive(now).map(([, { record, at }]) => agedRecord(record, now - at));
  }
}
