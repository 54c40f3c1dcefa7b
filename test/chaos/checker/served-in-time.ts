import { before, type Digest, type Instant } from './tenure.js';
import type { Rule, Violation } from './violation.js';

interface Step {
  readonly at: Instant;
  /** The number of permits that are taken. A lock counts as a semaphore with one permit. */
  readonly taken: number;
  /** How many permits a caller begins to wait for; negative: it stops waiting. */
  readonly wish: number;
  /** 1 or −1 if a caller that has to be served begins or ends its wait, otherwise 0. */
  readonly waiters: number;
  readonly call: string;
  /** Nobody released the lock: its lease ended. */
  readonly lapsed?: boolean;
}

/** This many grants to callers that came later are no accident. */
const OFTEN = 20;

/**
 * A caller that wants several locks and waits without a time limit is not passed over for ever by callers that came
 * later.
 *
 * @param most how many milliseconds the wait may take
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
 * No lock is free while a caller without a time limit waits for only that lock. This finds lost wake-ups for which a
 * timer compensates later.
 *
 * @param permits how many permits there are, by the semaphore's name. A semaphore counts as free while it has enough
 *   permits for one of the waiting callers. A lock with `permits` counts as free while it has room for every caller
 * @param most how many milliseconds may pass between one holder and the next: a few round trips to the backend. Of several
 *   permits that are free, each has that time
 * @param since when the faults were over
 * @param lapseNoticed how much later the first in line may learn that a lease has ended which nobody released: when it
 *   refreshes its place, because its timer is that of an earlier holder
 */
export function servedInTime(permits: ReadonlyMap<string, number>, most: number, since = 0, lapseNoticed = 0): Rule {
  return (digest) => {
    const violations: Violation[] = [];
    const room = roomByLock(digest);
    for (const [lock, steps] of stepsByLock(digest)) {
      const total = permits.get(lock) ?? room.get(lock) ?? 1;
      const wishes: number[] = [];
      const free = new FreePermits(total);
      let waiters = 0;
      let waited: Instant | undefined;
      for (const step of steps) {
        const needed = Math.max(1, ...wishes);
        const longest = waiters > 0 ? free.latestOf(needed) : undefined;
        if (longest !== undefined && waited !== undefined) {
          const from = Math.max(longest.at.at, waited.at);
          const allowed = most + (longest.lapsed ? lapseNoticed : 0);
          if (step.at.at - Math.max(from, since) > allowed) {
            const rest = total === 1 ? 'stood free' : `had ${free.count} of ${total} permits free`;
            violations.push({
              rule: 'served in time',
              message: `${lock} ${rest} for ${(step.at.at - from).toFixed(1)} ms while ${waiters} waited`,
              at: step.at,
              lock,
              calls: [step.call],
            });
          }
        }
        free.take(step);
        if (step.wish > 0) wishes.push(step.wish);
        else if (step.wish < 0) wishes.splice(wishes.indexOf(-step.wish), 1);
        if (waiters === 0 || Math.max(1, ...wishes) < needed) waited = step.at;
        waiters += step.waiters;
      }
    }
    return violations;
  };
}

/** The permits that nobody has. Whoever is granted one is given that which was free for longest. */
class FreePermits {
  private readonly permits: { readonly at: Instant; readonly lapsed: boolean }[];
  /** How many more are held than there are: readers share a lock. */
  private owed = 0;

  constructor(total: number) {
    const start = { at: Number.NEGATIVE_INFINITY, order: 0 };
    this.permits = Array.from({ length: total }, () => ({ at: start, lapsed: false }));
  }

  get count(): number {
    return this.permits.length;
  }

  /** Of this many that were free for longest, the one that became free last. */
  latestOf(count: number): { readonly at: Instant; readonly lapsed: boolean } | undefined {
    return this.permits[count - 1];
  }

  take({ taken, at, lapsed = false }: Step): void {
    for (let i = 0; i < taken; i++) if (this.permits.shift() === undefined) this.owed++;
    for (let i = 0; i > taken; i--)
      if (this.owed > 0) this.owed--;
      else this.permits.push({ at, lapsed });
  }
}

/** How many may hold each lock with `permits` according to the caller that lets fewest hold it. */
function roomByLock({ calls }: Digest): Map<string, number> {
  const room = new Map<string, number>();
  for (const { locks, mostHolders = 1 } of calls.values())
    for (const lock of locks) room.set(lock, Math.min(room.get(lock) ?? mostHolders, mostHolders));
  return room;
}

function stepsByLock({ calls, tenures, latches, crashed, end }: Digest): Map<string, Step[]> {
  const locks = new Map<string, Step[]>();
  const add = (lock: string, step: Step) => {
    const steps = locks.get(lock);
    if (steps === undefined) locks.set(lock, [step]);
    else steps.push(step);
  };
  for (const { call, process, locks: names, patient, permits, sent, answered, tenures: got } of calls.values()) {
    // Children of a scope wait for each other, not for the backend.
    if (names.length > 1 || latches.has(names[0]) || got.some(({ within }) => within !== undefined)) continue;
    // A caller that may leave need not be served, but the callers behind it wait for as long as it is there.
    const waiters = patient ? 1 : 0;
    add(names[0], { at: sent, taken: 0, wish: permits, waiters, call });
    add(names[0], { at: answered ?? crashed.get(process) ?? end, taken: 0, wish: -permits, waiters: -waiters, call });
  }
  for (const { lock, type, call, permits, granted, valid, detached } of tenures) {
    if (type === 'latch') continue;
    // Counted from the grant on, even if the lease had already ended then.
    add(lock, { at: granted, taken: permits, wish: 0, waiters: 0, call });
    const over = valid.at(-1)?.to ?? granted;
    const lapsed = detached || over.order < 0;
    add(lock, { at: before(over, granted) ? granted : over, taken: -permits, wish: 0, waiters: 0, call, lapsed });
  }
  for (const steps of locks.values()) steps.sort((one, other) => (before(one.at, other.at) ? -1 : 1));
  return locks;
}
