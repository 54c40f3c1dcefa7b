import { before, type Call, type Digest, type Instant, type LatchRecord } from './tenure.js';
import type { Violation } from './violation.js';

/**
 * A latch lets no caller pass before all its steps were requested, and delays no caller after all of them were made.
 *
 * @param within how many milliseconds may pass between the last step and the moment when the last waiting caller is let
 *   through; undefined: not checked
 * @param since when the faults ended
 */
export function latchesOpenOnce(within: number | undefined, since = 0): (digest: Digest) => Violation[] {
  return (digest) => {
    const violations: Violation[] = [];
    for (const call of digest.calls.values()) {
      const [lock] = call.locks;
      const steps = digest.latches.get(lock);
      if (steps === undefined || call.answered === undefined) continue;
      const message = complaint(call, call.answered, steps, digest, within, since);
      if (message === undefined) continue;
      violations.push({
        rule: 'latches open once',
        message: `${lock}: ${message}`,
        at: call.answered,
        lock,
        calls: [call.call],
      });
    }
    return violations;
  };
}

function complaint(
  { call, sent, refused, patient, once }: Call,
  answered: Instant,
  steps: readonly LatchRecord[],
  { upsets }: Digest,
  within: number | undefined,
  since: number,
): string | undefined {
  const mayOpen = whenReached(steps, 'counting', 'ending');
  const isOpen = whenReached(steps, 'counted', 'ended');
  if (refused === undefined) {
    if (upsets.some(({ at }) => at < answered.at)) return undefined;
    if (mayOpen === undefined || before(answered, mayOpen))
      return `${call} got through before all steps were asked for`;
    if (within === undefined || isOpen === undefined || !patient) return undefined;
    const waited = answered.at - Math.max(isOpen.at, sent.at, since);
    return waited > within ? `${call} was held up for ${waited.toFixed(1)} ms after it had opened` : undefined;
  }
  if (refused.error !== 'LockBusyError' || isOpen === undefined || before(sent, isOpen)) return undefined;
  // A caller with a time limit may not get its answer within that time.
  if (!once && (within === undefined || answered.at - Math.max(sent.at, since) <= within)) return undefined;
  return `${call} found it closed after it had opened`;
}

/** When the number of steps reached the count, or the latch was deleted. */
function whenReached(
  records: readonly LatchRecord[],
  each: 'counting' | 'counted',
  all: 'ending' | 'ended',
): Instant | undefined {
  let left = records.find(({ step }) => step === 'set')?.count ?? 1;
  for (const { step, count, now } of records) {
    if (step === each) left -= count;
    if (left <= 0 || step === all) return now;
  }
  return undefined;
}
