import { before, type Digest, type Tenure } from './tenure.js';
import type { Violation } from './violation.js';

/**
 * Nobody gets permits whose lease has already ended. Permits exist until their lease ends: before that, a release never
 * reports that they are gone. Permits that a process renews are reported as lost soon after their lease has ended.
 *
 * @param reportedWithin how many milliseconds may pass between the end of a lease and the report; undefined: no limit,
 *   because processes are suspended
 */
export function permitsKept(reportedWithin: number | undefined): (digest: Digest) => Violation[] {
  return (digest) =>
    digest.tenures.flatMap((tenure) => {
      if (tenure.type !== 'permits' || tenure.suspect) return [];
      const message =
        givenTooLate(tenure, digest) ?? goneTooEarly(tenure, digest) ?? lossUntold(tenure, digest, reportedWithin);
      if (message === undefined) return [];
      const { lock, call, granted } = tenure;
      return [
        {
          rule: 'permits kept',
          message: `${lock}: ${message}`,
          at: digest.calls.get(call)?.releaseAsked ?? granted,
          lock,
          calls: [call],
        },
      ];
    });
}

/** In milliseconds, because the clocks of the process and of the history differ a little. */
const TOLERANCE = 10;

function givenTooLate({ call, process, deadline, valid, granted }: Tenure, { closing }: Digest): string | undefined {
  if (valid.length > 0 || granted.at <= deadline + TOLERANCE || closing.has(process)) return undefined;
  return `${call} got permits at ${granted.at.toFixed(1)} whose lease had ended at ${deadline.toFixed(1)}`;
}

function goneTooEarly({ call, deadline, lost }: Tenure, { calls, upsets }: Digest): string | undefined {
  const released = calls.get(call)?.released;
  if (released?.outcome !== 'lost' || lost !== undefined || released.at >= deadline) return undefined;
  if (upsets.some(({ at }) => at <= released.at)) return undefined;
  return `the permits of ${call} were gone at ${released.at.toFixed(1)}, with a lease until ${deadline.toFixed(1)}`;
}

function lossUntold(
  { call, process, deadline, lost, kept }: Tenure,
  { calls, crashed, closing, end }: Digest,
  reportedWithin: number | undefined,
): string | undefined {
  if (!kept || reportedWithin === undefined) return undefined;
  const known = lost ?? calls.get(call)?.releaseAsked ?? crashed.get(process) ?? end;
  const closed = closing.get(process);
  if (known.at <= deadline + reportedWithin || (closed !== undefined && before(closed, known))) return undefined;
  return `the lease of ${call} ended at ${deadline.toFixed(1)}, and its process counted on it until ${known.at.toFixed(1)}`;
}
