import type { Call, Digest } from './tenure.js';
import type { Violation } from './violation.js';

/** Every release is answered; that of a lease which was lost before says so. */
export function lossesTold({ calls, crashed, closing, end }: Digest): Violation[] {
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
