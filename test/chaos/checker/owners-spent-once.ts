import type { Digest } from './tenure.js';
import type { Violation } from './violation.js';

/**
 * No owner id acquires a lock again after it was released under that id, because a late release would free the second
 * acquisition.
 */
export function ownersSpentOnce({ reused }: Digest): Violation[] {
  return reused.map(({ process, lock, owner, now }) => ({
    rule: 'owners spent once',
    message: `${lock}: ${process} acquires it as ${owner}, and had given it back under that id before`,
    at: now,
    lock,
    calls: [],
  }));
}
