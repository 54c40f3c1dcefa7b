import type { ListedLock, ListedResult, ListedSynchronizer } from '../../service/lock-inspection.js';
import type { LockService } from '../../service/lock-service.js';

const PAGE = 500;

/** All pages of the list, by name. */
export async function allLocks(
  locks: LockService,
  match: string | undefined,
): Promise<{ locks: ListedLock[]; synchronizers: ListedSynchronizer[]; results: ListedResult[] }> {
  const found = new Map<string, ListedLock>();
  const others = new Map<string, ListedSynchronizer>();
  const results = new Map<string, ListedResult>();
  let cursor: string | undefined;
  do {
    const page = await locks.list({ match, cursor, count: PAGE });
    for (const lock of page.locks) found.set(lock.name, lock);
    for (const other of page.synchronizers) others.set(other.name, other);
    for (const result of page.results) results.set(result.name, result);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return { locks: byName(found), synchronizers: byName(others), results: byName(results) };
}

function byName<T extends { readonly name: string }>(found: ReadonlyMap<string, T>): T[] {
  return [...found.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}
