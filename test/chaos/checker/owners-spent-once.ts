import type { Digest } from './tenure.js';
import type { Violation } from './violation.js';

/** No id acquires a lock again that was given back under it: a release that arrives late would free what the second acquisition took. */
export function ownersSpentOnce({ reused }: Digest): Violation[] {
  return reused.map(({ process, lock, owner, now }) => ({
    rule: 'owners spent once',
    message: `${lock}: ${process} acquires it as ${owner}, and had given it back under that id before`,
    at: now,
    lock,
    calls: [],
  }));
}
