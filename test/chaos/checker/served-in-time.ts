import { before, type Digest, type Instant } from './tenure.js';
import type { Rule, Violation } from './violation.js';

interface Step {
  readonly at: Instant;
  /** Permits that are taken; a lock is like a semaphore with one. */
  readonly taken: number;
  /** Somebody comes to wait for so many permits; negative: goes. */
  readonly wish: number;
  /** Comes or goes with it: 1, −1, or 0 where nobody is to be served. */
  readonly waiters: number;
  readonly call: string;
}

/** So many grants to callers that came later are no accident. */
const OFTEN = 20;

/**
 * Whoever wants several locks, and waits patiently, is not passed over for ever: by callers that came later, again and again.
 *
 * @param most milliseconds that it may take
 */
export function notPassedOver(most: number): Rule {
  return ({ calls, tenures, crashed, end }) => {
    const violations: Violation[] = [];
    for (const { call, process, locks, patient, sent, answered } of calls.values()) {
      if (!patient || locks.length === 1) continue;
      const at = answered ?? crashed.get(process) ?? end;
      const waited = at.at - sent.at;
      if (waited <= most) continue;
      const others = tenures.filter(
        ({ lock, granted, call }) =>
          locks.includes(lock) &&
          before(sent, granted) &&
          before(granted, at) &&
          before(sent, calls.get(call)?.sent ?? sent),
      );
      if (others.length < OFTEN) continue;
      violations.push({
        rule: 'not passed over',
        message: `${call} waited for ${waited.toFixed(0)} ms for ${locks.join(', ')}, which ${others.length} callers got that came later`,
        at,
        lock: locks[0],
        calls: [call],
      });
    }
    return violations;
  };
}

/**
 * No lock stands free while somebody waits for it alone and patiently: a wake-up that was lost, and that some timer makes up for
 * later.
 *
 * @param permits how many permits there are, by the semaphore's name: it counts as free while it has enough for anybody who waits
 * @param most milliseconds that may pass from one to the next: a few trips to the backend
 * @param since when the faults were over
 */
export function servedInTime(permits: ReadonlyMap<string, number>, most: number, since = 0): Rule {
  return (digest) => {
    const violations: Violation[] = [];
    for (const [lock, steps] of stepsByLock(digest)) {
      const total = permits.get(lock) ?? 1;
      const wishes: number[] = [];
      const isFree = () => total - taken >= Math.max(1, ...wishes);
      let taken = 0;
      let waiters = 0;
      let free: Instant | undefined;
      for (const step of steps) {
        if (isFree() && waiters > 0 && free !== undefined && step.at.at - Math.max(free.at, since) > most) {
          const waited = `${(step.at.at - free.at).toFixed(1)} ms`;
          violations.push({
            rule: 'served in time',
            message: `${lock} stood free for ${waited} while ${waiters} waited`,
            at: step.at,
            lock,
            calls: [step.call],
          });
        }
        const stoodFree = isFree() && waiters > 0;
        taken += step.taken;
        if (step.wish > 0) wishes.push(step.wish);
        else if (step.wish < 0) wishes.splice(wishes.indexOf(-step.wish), 1);
        waiters += step.waiters;
        if (!isFree() || waiters === 0) free = undefined;
        else if (!stoodFree) free = step.at;
      }
    }
    return violations;
  };
}

function stepsByLock({ calls, tenures, latches, crashed, end }: Digest): Map<string, Step[]> {
  const locks = new Map<string, Step[]>();
  const add = (lock: string, step: Step) => {
    const steps = locks.get(lock);
    if (steps === undefined) locks.set(lock, [step]);
    else steps.push(step);
  };
  for (const { call, process, locks: names, patient, permits, sent, answered, tenures: got } of calls.values()) {
    // What a scope's children wait for is each other.
    if (names.length > 1 || latches.has(names[0]) || got.some(({ within }) => within !== undefined)) continue;
    // Whoever may leave need not be served, but those behind it wait for as long as it is there.
    const waiters = patient ? 1 : 0;
    add(names[0], { at: sent, taken: 0, wish: permits, waiters, call });
    add(names[0], { at: answered ?? crashed.get(process) ?? end, taken: 0, wish: -permits, waiters: -waiters, call });
  }
  for (const { lock, type, call, permits, granted, valid } of tenures) {
    if (type === 'latch') continue;
    // From the grant on, also where the lease was over by then.
    add(lock, { at: granted, taken: permits, wish: 0, waiters: 0, call });
    const over = valid.at(-1)?.to ?? granted;
    add(lock, { at: before(over, granted) ? granted : over, taken: -permits, wish: 0, waiters: 0, call });
  }
  for (const steps of locks.values()) steps.sort((one, other) => (before(one.at, other.at) ? -1 : 1));
  return locks;
}
