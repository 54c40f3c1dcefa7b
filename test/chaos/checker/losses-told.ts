import type { Digest } from './tenure.js';
import type { Violation } from './violation.js';

/** Every release is answered; that of a lease which was lost before says so. */
export function lossesTold({ calls, crashed, end }: Digest): Violation[] {
  const violations: Violation[] = [];
  for (const call of calls.values()) {
    const [lock] = call.locks;
    const report = (message: string) =>
      violations.push({ rule: 'losses told', message, at: call.releaseAsked ?? end, lock, calls: [call.call] });
    if (call.releaseAsked === undefined) continue;
    if (call.released === undefined) {
      if (!crashed.has(call.process)) report(`${lock}: the release of ${call.call} got no answer`);
    } else if (call.released.outcome === 'failed') {
      report(`${lock}: the release of ${call.call} failed`);
    } else if (call.lostBefore && call.released.outcome === 'released') {
      report(`${lock}: the lease of ${call.call} was lost before its release, which did not say so`);
    }
  }
  return violations;
}
