import type { Call, Digest } from './tenure.js';
import type { Rule, Violation } from './violation.js';

/**
 * A ticket is used once. Whoever uses it first, and in time, gets the lock.
 *
 * @param within how many milliseconds an adoption may take; undefined if requests get lost, so that there is no limit
 *   and an adoption may fail
 */
export function ticketsUsedOnce(within: number | undefined): Rule {
  return (digest) =>
    [...adoptionsByTicket(digest)].flatMap(([ticket, adoptions]) => {
      const adopted = adoptions.filter(({ tenures }) => tenures.length > 0);
      const lock = adoptions[0].locks[0];
      const report = (message: string): Violation[] => [
        {
          rule: 'tickets used once',
          message: `${lock}: ${message}`,
          at: adoptions.at(-1)?.answered ?? digest.end,
          lock,
          calls: [ticket, ...adoptions.map(({ call }) => call)],
        },
      ];
      if (adopted.length > 1)
        return report(`${adopted.map(({ call }) => call).join(' and ')} adopted it with one ticket`);
      const [detached] = digest.calls.get(ticket)?.tenures ?? [];
      const [{ call, sent, answered, refused }] = adoptions;
      const isInTime = within !== undefined && !detached.suspect && sent.at + within < detached.deadline;
      if (!isInTime || adopted.length > 0 || answered === undefined) return [];
      return report(`${call} was refused the lock of its ticket with ${refused?.error}: ${refused?.message}`);
    });
}

function adoptionsByTicket({ calls }: Digest): Map<string, Call[]> {
  const byTicket = new Map<string, Call[]>();
  for (const call of calls.values()) {
    if (call.ticket === undefined) continue;
    byTicket.set(call.ticket, [...(byTicket.get(call.ticket) ?? []), call]);
  }
  return byTicket;
}
