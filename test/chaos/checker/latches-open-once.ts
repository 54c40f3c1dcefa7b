import { before, type Call, type Digest, type Instant, type LatchRecord } from './tenure.js';
import type { Violation } from './violation.js';

/**
 * A latch lets nobody through before all its steps were asked for, and holds nobody up after all of them were done.
 *
 * @param within milliseconds that may pass from the last step to the last who waits; undefined: not looked at
 * @param since when the faults were over
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
  // Whoever waits for so long and no longer may not get its answer in that time.
  if (!once && (within === undefined || answered.at - Math.max(sent.at, since) <= within)) return undefined;
  return `${call} found it closed after it had opened`;
}

/** When as many steps as it has a count were taken, or its end was. */
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
