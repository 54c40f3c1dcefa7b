import type { Call, Digest } from './tenure.js';
import type { Rule, Violation } from './violation.js';

/** {@link lossesAnswered}, and {@link lossesReportedInTime} if there is a time limit. */
export function lossesReported(within: number | undefined): Rule {
  return (digest) => [...lossesAnswered(digest), ...(within === undefined ? [] : lossesReportedInTime(digest, within))];
}

/** A process notices the end of a lease in time, unless its event loop is blocked. */
function lossesReportedInTime({ tenures, calls, crashed, closing, stalls, end }: Digest, within: number): Violation[] {
  return tenures.flatMap(({ type, suspect, detached, deadline, lost, call, lock, process }) => {
    const asked = calls.get(call);
    // After shutdown, leases expire. After the loss of one lock of a lease, its other locks are no longer watched.
    const closed = closing.get(process)?.at ?? Number.POSITIVE_INFINITY;
    const isLeft =
      closed <= deadline + within || asked?.tenures.some((other) => other.lock !== lock && other.lost !== undefined);
    if (type === 'permits' || type === 'latch' || suspect || detached || isLeft || !Number.isFinite(deadline))
      return [];
    let due = deadline;
    for (const { at, until, ...stall } of stalls)
      if (stall.process === process && at <= due + within && until > due) due = until;
    const over = [lost, asked?.releaseAsked, crashed.get(process), end].map(
      (instant) => instant?.at ?? Number.POSITIVE_INFINITY,
    );
    const late = Math.min(...over) - due;
    if (late <= within) return [];
    const message = `${lock}: the lease of ${call} ended at ${deadline.toFixed(1)}, and its holder did not notice it for ${late.toFixed(1)} ms`;
    return [{ rule: 'losses reported', message, at: { at: due, order: 0 }, lock, calls: [call] } satisfies Violation];
  });
}

/**
 * Every release is answered. The release of a lost lease reports the loss. Only a process that shuts down refuses to
 * detach a lock: it has left the lock to lapse.
 */
function lossesAnswered({ calls, crashed, closing, end }: Digest): Violation[] {
  const violations: Violation[] = [];
  for (const call of calls.values()) {
    const [lock] = call.locks;
    const report = (message: string) =>
      violations.push({ rule: 'losses reported', message, at: call.releaseAsked ?? end, lock, calls: [call.call] });
    if (call.releaseAsked === undefined) continue;
    const closed = closing.get(call.process)?.at ?? Number.POSITIVE_INFINITY;
    if (call.released === undefined) {
      if (!crashed.has(call.process)) report(`${lock}: the release of ${call.call} got no answer`);
    } else if (call.released.outcome === 'failed') {
      // After shutdown, a service sends no more releases, and the release of a permit fails.
      if (!hasPermits(call) || closed > call.released.at) report(`${lock}: the release of ${call.call} failed`);
    } else if (call.released.outcome === 'kept' && closed > call.released.at) {
      report(`${lock}: ${call.call} could not be detached, although its process was not shutting down`);
    } else if (!hasPermits(call) && call.lostBefore && call.released.outcome !== 'lost') {
      report(`${lock}: the lease of ${call.call} was lost before its release, which did not say so`);
    }
  }
  return violations;
}

/** The backend answers the release of a permit, and may keep the permit a little longer than its holder expects. */
function hasPermits({ tenures }: Call): boolean {
  return tenures.some(({ type }) => type === 'permits');
}
