import type { ListedLock } from '../../service/lock-inspection.js';
import type { LockService } from '../../service/lock-service.js';

const PAGE = 500;

/** All pages of the list, by name. */
export async function allLocks(locks: LockService, match: string | undefined): Promise<ListedLock[]> {
  const found = new Map<string, ListedLock>();
  let cursor: string | undefined;
  do {
    const page = await locks.list({ match, cursor, count: PAGE });
    for (const lock of page.locks) found.set(lock.name, lock);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return [...found.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}
