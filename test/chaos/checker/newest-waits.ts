import { before, type Call } from './tenure.js';
import type { Rule, Violation } from './violation.js';

/**
 * Where only the newest caller waits, no two of them wait for the same lock for long, and none gives way to an earlier
 * one.
 *
 * @param most how many milliseconds it may take until a later caller has taken the place of an earlier one
 * @param since when the faults were over
 */
export function newestWaits(most: number, since = 0): Rule {
  return ({ calls, crashed, end }) => {
    const violations: Violation[] = [];
    const newest = [...calls.values()].filter((call) => call.newest);
    const endOf = ({ answered, process }: Call) => answered ?? crashed.get(process) ?? end;
    for (const later of newest) {
      const { call, locks, sent, refused } = later;
      const rivals = newest.filter((other) => other !== later && other.locks[0] === locks[0]);
      const add = (message: string) =>
        violations.push({ rule: 'newest waits', message, at: endOf(later), lock: locks[0], calls: [call] });
      for (const earlier of rivals.filter((other) => before(other.sent, sent))) {
        const both = Math.min(endOf(earlier).at, endOf(later).at) - Math.max(sent.at, since);
        if (both > most)
          add(`${locks[0]}: ${earlier.call} waited for ${both.toFixed(1)} ms beside ${call}, which is newer`);
      }
      if (
        refused?.error === 'LockSupersededError' &&
        sent.at > since &&
        !rivals.some((other) => other.sent.at > sent.at - most)
      )
        add(`${locks[0]}: ${call} was superseded, and nobody has called since`);
    }
    return violations;
  };
}
