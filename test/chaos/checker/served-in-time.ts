import { before, type Digest, type Instant } from './tenure.js';
import type { Rule, Violation } from './violation.js';

interface Step {
  readonly at: Instant;
  readonly holders: number;
  readonly waiters: number;
  readonly call: string;
}

/**
 * No lock stands free while somebody waits for it alone and patiently: a wake-up that was lost, and that some timer makes up for
 * later.
 *
 * @param most milliseconds that may pass from one to the next: a few trips to the backend
 * @param since when the faults were over
 */
export function servedInTime(most: number, since = 0): Rule {
  return (digest) => {
    const violations: Violation[] = [];
    for (const [lock, steps] of stepsByLock(digest)) {
      let holders = 0;
      let waiters = 0;
      let free: Instant | undefined;
      for (const step of steps) {
        if (holders === 0 && waiters > 0 && free !== undefined && step.at.at - Math.max(free.at, since) > most) {
          const waited = `${(step.at.at - free.at).toFixed(1)} ms`;
          violations.push({
            rule: 'served in time',
            message: `${lock} stood free for ${waited} while ${waiters} waited`,
            at: step.at,
            lock,
            calls: [step.call],
          });
        }
        const stoodFree = holders === 0 && waiters > 0;
        holders += step.holders;
        waiters += step.waiters;
        if (holders > 0 || waiters === 0) free = undefined;
        else if (!stoodFree) free = step.at;
      }
    }
    return violations;
  };
}

function stepsByLock({ calls, tenures, crashed, end }: Digest): Map<string, Step[]> {
  const locks = new Map<string, Step[]>();
  const add = (lock: string, step: Step) => {
    const steps = locks.get(lock);
    if (steps === undefined) locks.set(lock, [step]);
    else steps.push(step);
  };
  for (const { call, process, locks: names, patient, sent, answered, tenures: got } of calls.values()) {
    // What a scope's children wait for is each other.
    if (!patient || names.length > 1 || got.some(({ within }) => within !== undefined)) continue;
    add(names[0], { at: sent, holders: 0, waiters: 1, call });
    add(names[0], { at: answered ?? crashed.get(process) ?? end, holders: 0, waiters: -1, call });
  }
  for (const { lock, call, granted, valid } of tenures) {
    // From the grant on, also where the lease was over by then.
    add(lock, { at: granted, holders: 1, waiters: 0, call });
    const over = valid.at(-1)?.to ?? granted;
    add(lock, { at: before(over, granted) ? granted : over, holders: -1, waiters: 0, call });
  }
  for (const steps of locks.values()) steps.sort((one, other) => (before(one.at, other.at) ? -1 : 1));
  return locks;
}
