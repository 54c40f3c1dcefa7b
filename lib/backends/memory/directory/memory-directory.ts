import { agedRecord, type ClientRecord, type KeyPage, type LockDirectory } from '../../lock-directory.js';
import type { MemoryStore } from '../memory-store.js';
import { globPattern } from './glob-pattern.js';

/** Before the key at which the next page begins, in a cursor. */
const AFTER = 'after:';

/** The {@link LockDirectory} of one process. Pages are in the order of the keys. */
export class MemoryDirectory implements LockDirectory {
  constructor(
    private readonly store: MemoryStore,
    private readonly now: () => number,
  ) {}

  async list(prefix: string, match: string, cursor: string | undefined, count: number): Promise<KeyPage | undefined> {
    if (cursor !== undefined && !cursor.startsWith(AFTER + prefix)) return undefined;
    const pattern = globPattern(match);
    const after = cursor?.slice(AFTER.length) ?? '';
    const keys = this.store.locks
      .alive(this.now())
      .map(([key]) => key)
      .filter((key) => key > after && key.startsWith(prefix) && pattern.test(key.slice(prefix.length)))
      .sort();
    const page = keys.slice(0, count);
    return { keys: page, cursor: keys.length > count ? AFTER + page[count - 1] : undefined };
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
