import { before, type Digest, type Stretch, type Tenure } from './tenure.js';
import type { Rule, Violation } from './violation.js';

interface Valid {
  readonly tenure: Tenure;
  readonly stretch: Stretch;
}

/**
 * No two leases of one lock are valid at the same time, except those of readers, and of permits up to their number. A
 * share of a lease (re-entry) overlaps only with the shares around it. No share is given after the lease has ended by
 * the clock, because others may hold the lock then.
 *
 * @param permits how many permits there are, by the semaphore's name
 */
export function noOverlap(permits: ReadonlyMap<string, number>): Rule {
  return (digest) => {
    const violations: Violation[] = digest.tenures.filter(isOverdue).map(describeOverdue);
    for (const [lock, stretches] of stretchesByLock(digest)) {
      let valid: Valid[] = [];
      for (const next of stretches) {
        valid = valid.filter(({ stretch }) => before(next.stretch.from, stretch.to));
        const total = permits.get(lock);
        const clash =
          total === undefined
            ? valid.find(({ tenure }) => tenure !== next.tenure && !mayOverlap(tenure, next.tenure, digest))
            : tooMany(valid, next, total);
        if (clash !== undefined) violations.push(describe(lock, clash, next, total));
        valid.push(next);
      }
    }
    return violations;
  };
}

/** Whether it is a share of a lease on which its own process could not rely any more. */
function isOverdue({ within, suspect, deadline, granted }: Tenure): boolean {
  return within !== undefined && !suspect && deadline <= granted.at;
}

function describeOverdue({ lock, call, granted, shows, within }: Tenure): Violation {
  const message = `${lock}: ${shows} was given as a share of ${within}, whose lease had ended`;
  return { rule: 'no overlap', message, at: granted, lock, calls: [call] };
}

function stretchesByLock({ tenures }: Digest): Map<string, Valid[]> {
  const locks = new Map<string, Valid[]>();
  for (const tenure of tenures) {
    if (tenure.type === 'latch') continue;
    const stretches = locks.get(tenure.lock) ?? [];
    locks.set(tenure.lock, stretches);
    for (const stretch of tenure.valid) if (before(stretch.from, stretch.to)) stretches.push({ tenure, stretch });
  }
  for (const stretches of locks.values()) {
    stretches.sort((one, other) => (before(one.stretch.from, other.stretch.from) ? -1 : 1));
  }
  return locks;
}

function mayOverlap(one: Tenure, other: Tenure, digest: Digest): boolean {
  if (one.type === 'read' && other.type === 'read') return true;
  if (one.process !== other.process || one.owner !== other.owner) return false;
  // A writer that also reads has a token for each of its locks.
  if (isReadWrite(one) && isReadWrite(other) && one.type !== other.type) return true;
  return one.token === other.token && (isInside(one, other, digest) || isInside(other, one, digest));
}

function isReadWrite({ type }: Tenure): boolean {
  return type === 'read' || type === 'write';
}

function isInside(inner: Tenure, outer: Tenure, { calls }: Digest): boolean {
  for (let { within } = inner; within !== undefined; ) {
    if (within === outer.call) return true;
    within = calls.get(within)?.tenures.find(({ lock }) => lock === inner.lock)?.within;
  }
  return false;
}

function tooMany(valid: readonly Valid[], next: Valid, total: number): Valid | undefined {
  const taken = valid.reduce((sum, { tenure }) => sum + tenure.permits, next.tenure.permits);
  return taken > total ? valid[0] : undefined;
}

function describe(lock: string, one: Valid, next: Valid, total: number | undefined): Violation {
  const what = total === undefined ? 'two leases are valid at once' : `more than ${total} permits are held at once`;
  return {
    rule: 'no overlap',
    message: `${lock}: ${what}: ${one.tenure.shows} was valid until ${one.stretch.to.at.toFixed(1)} when ${next.tenure.shows} was granted`,
    at: next.stretch.from,
    lock,
    calls: [one.tenure.call, next.tenure.call],
  };
}
