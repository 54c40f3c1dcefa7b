import type { Call, Digest } from './tenure.js';
import type { Rule, Violation } from './violation.js';

/** As {@link lossesAnswered}, and {@link lossesToldInTime} where that can be judged. */
export function lossesTold(within: number | undefined): Rule {
  return (digest) => [...lossesAnswered(digest), ...(within === undefined ? [] : lossesToldInTime(digest, within))];
}

/** Whoever holds a lock when its lease ends is told then, and not later than its event loop lets it be. */
function lossesToldInTime({ tenures, calls, crashed, closing, stalls, end }: Digest, within: number): Violation[] {
  return tenures.flatMap(({ type, suspect, deadline, lost, call, lock, process }) => {
    const asked = calls.get(call);
    // Shutdown lets leases lapse; the other locks of a lease that is lost are not watched any more.
    const closed = closing.get(process)?.at ?? Number.POSITIVE_INFINITY;
    const isLeft =
      closed <= deadline + within || asked?.tenures.some((other) => other.lock !== lock && other.lost !== undefined);
    if (type === 'permits' || type === 'latch' || suspect || isLeft || !Number.isFinite(deadline)) return [];
    let due = deadline;
    for (const { at, until, ...stall } of stalls)
      if (stall.process === process && at <= due + within && until > due) due = until;
    const over = [lost, asked?.releaseAsked, crashed.get(process), end].map(
      (instant) => instant?.at ?? Number.POSITIVE_INFINITY,
    );
    const late = Math.min(...over) - due;
    if (late <= within) return [];
    const message = `${lock}: the lease of ${call} ended at ${deadline.toFixed(1)}, and its holder was not told for ${late.toFixed(1)} ms`;
    return [{ rule: 'losses told', message, at: { at: due, order: 0 }, lock, calls: [call] } satisfies Violation];
  });
}

/** Every release is answered; that of a lease which was lost before says so. */
function lossesAnswered({ calls, crashed, closing, end }: Digest): Violation[] {
  const violations: Violation[] = [];
  for (const call of calls.values()) {
    const [lock] = call.locks;
    const report = (message: string) =>
      violations.push({ rule: 'losses told', message, at: call.releaseAsked ?? end, lock, calls: [call.call] });
    if (call.releaseAsked === undefined) continue;
    if (call.released === undefined) {
      if (!crashed.has(call.process)) report(`${lock}: the release of ${call.call} got no answer`);
    } else if (call.released.outcome === 'failed') {
      // A service that is shut down sends nothing any more, and says so of permits.
      const closed = closing.get(call.process)?.at ?? Number.POSITIVE_INFINITY;
      if (!hasPermits(call) || closed > call.released.at) report(`${lock}: the release of ${call.call} failed`);
    } else if (!hasPermits(call) && call.lostBefore && call.released.outcome === 'released') {
      report(`${lock}: the lease of ${call.call} was lost before its release, which did not say so`);
    }
  }
  return violations;
}

/** Their release is answered by who keeps them, who may have them for somewhat longer than their holder counts on. */
function hasPermits({ tenures }: Call): boolean {
  return tenures.some(({ type }) => type === 'permits');
}
