import type { Call, Digest } from './tenure.js';
import type { Rule, Violation } from './violation.js';

/**
 * At the end, a semaphore has all permits except those that are never given back: no permit was lost, and none was
 * created. Permits that a process was taking or giving back when it ended may be counted either way.
 *
 * @param permits how many permits there are, by the semaphore's name
 */
export function permitsConserved(permits: ReadonlyMap<string, number>): Rule {
  return (digest) =>
    digest.permitsLeft.flatMap(({ at, lock, available }): Violation[] => {
      const total = permits.get(lock);
      if (total === undefined) return [];
      let held = 0;
      let doubtful = 0;
      for (const call of digest.calls.values()) {
        if (call.locks[0] !== lock) continue;
        if (isDoubtful(call, digest, at)) doubtful += call.permits;
        else if (call.releaseAsked === undefined && call.tenures.some(({ isForGood }) => isForGood))
          held += call.permits;
      }
      const least = total - held - doubtful;
      const most = total - held;
      if (available >= least && available <= most) return [];
      const expected = least === most ? `${most}` : `${least} to ${most}`;
      const message = `${lock} has ${available} permits at the end, where ${expected} of ${total} should be left`;
      return [{ rule: 'permits conserved', message, at: digest.end, lock, calls: [] }];
    });
}

/** Whether its process ended before it knew the result. */
function isDoubtful(
  { process, tenures, releaseAsked, released }: Call,
  { crashed, closing }: Digest,
  at: number,
): boolean {
  const ended = crashed.get(process) ?? closing.get(process);
  if (ended === undefined || ended.at >= at) return false;
  if (tenures.length === 0) return true;
  if (!tenures.some(({ isForGood }) => isForGood)) return false;
  return releaseAsked !== undefined && released?.outcome !== 'released';
}
