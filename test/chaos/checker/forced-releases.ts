import { before, type Digest } from './tenure.js';
import type { Violation } from './violation.js';

/**
 * A process that has released a lock by force, and knows its owners, no longer grants it to these owners, and
 * immediately reports the loss to those that hold it.
 */
export function forcedReleases({ forced, tenures, calls }: Digest): Violation[] {
  return forced.flatMap(({ now, at, process, lock, owners }) =>
    tenures.flatMap((tenure) => {
      const { granted, lost, call, owner, type } = tenure;
      if (tenure.process !== process || tenure.lock !== lock || !owners.includes(owner)) return [];
      const over = [lost, calls.get(call)?.releaseAsked].some((instant) => instant !== undefined && instant.at <= at);
      if (before(granted, now) && over) return [];
      // A writer that also reads does so under the same owner.
      if (!before(granted, now) && type === 'read') return [];
      const what = before(granted, now) ? 'was still held' : 'was granted';
      const message = `${lock}: ${call} ${what} as ${owner} after its process had released the lock by force`;
      return [{ rule: 'forced releases', message, at: now, lock, calls: [call] } satisfies Violation];
    }),
  );
}
