import type { ListedLock, ListedResult, ListedSynchronizer } from '../../service/lock-inspection.js';
import type { LockService } from '../../service/lock-service.js';
import { CommandError } from '../command-error.js';

const PAGE = 500;

/** How often a list begins anew if the masters of a cluster change meanwhile. */
const MOST_STARTS = 5;

interface AllLocks {
  locks: ListedLock[];
  synchronizers: ListedSynchronizer[];
  results: ListedResult[];
}

/** All pages of the list, by name. */
export async function allLocks(locks: Pick<LockService, 'list'>, match: string | undefined): Promise<AllLocks> {
  for (let start = 1; start <= MOST_STARTS; start++) {
    const all = await allPages(locks, match);
    if (all !== undefined) return all;
  }
  throw new CommandError('unavailable', 'The masters of the cluster change again and again. Try again');
}

/** @returns undefined if the masters of a cluster have changed, which makes the cursor of a page useless */
async function allPages(locks: Pick<LockService, 'list'>, match: string | undefined): Promise<AllLocks | undefined> {
  const found = new Map<string, ListedLock>();
  const others = new Map<string, ListedSynchronizer>();
  const results = new Map<string, ListedResult>();
  let cursor: string | undefined;
  do {
    const page = await locks.list({ match, cursor, count: PAGE }).catch((error: Error) => {
      if (cursor === undefined || error.name !== 'LockConfigurationError') throw error;
    });
    if (page === undefined) return undefined;
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
