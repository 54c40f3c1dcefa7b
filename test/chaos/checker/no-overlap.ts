import { before, type Digest, type Stretch, type Tenure } from './tenure.js';
import type { Rule, Violation } from './violation.js';

interface Valid {
  readonly tenure: Tenure;
  readonly stretch: Stretch;
}

/**
 * No two leases of one lock are valid at the same time, except those of readers, of permits up to their number, and of
 * a lock with `permits` up to what its callers said: see {@link tooManyHolders}. A share of a lease (re-entry) overlaps
 * only with the shares around it. No share is given after the lease has ended by the clock, because others may hold the
 * lock then.
 *
 * @param permits how many permits there are, by the semaphore's name
 */
export function noOverlap(permits: ReadonlyMap<string, number>): Rule {
  return (digest) => {
    const violations: Violation[] = digest.tenures.filter((tenure) => isOverdue(tenure, digest)).map(describeOverdue);
    for (const [lock, stretches] of stretchesByLock(digest)) {
      let valid: Valid[] = [];
      for (const next of stretches) {
        valid = valid.filter(({ stretch }) => before(next.stretch.from, stretch.to));
        const clash = clashOf(valid, next, permits, digest);
        if (clash !== undefined) violations.push(describe(lock, clash, next));
        valid.push(next);
      }
    }
    return violations;
  };
}

/**
 * Whether it is a share of a lease on which its own process could not rely any more. A caller in the scope of a lost lock
 * acquires it anew, under another owner id.
 */
function isOverdue(tenure: Tenure, digest: Digest): boolean {
  const { owner, suspect, deadline, granted } = tenure;
  return digest.outer(tenure)?.owner === owner && !suspect && deadline <= granted.at;
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

/** A lease beside which the next one must not be valid, and how many may be. */
type Clash = Valid & { readonly most: number };

function clashOf(
  valid: readonly Valid[],
  next: Valid,
  permits: ReadonlyMap<string, number>,
  digest: Digest,
): Clash | undefined {
  const { type, lock } = next.tenure;
  const total = permits.get(lock);
  if (type === 'permits' && total !== undefined) return tooManyPermits(valid, next, total);
  const other = valid.find(({ tenure }) => tenure !== next.tenure && !mayOverlap(tenure, next.tenure, digest));
  if (other !== undefined) return { ...other, most: 1 };
  return type === 'place' ? tooManyHolders(valid, next, digest) : undefined;
}

function mayOverlap(one: Tenure, other: Tenure, digest: Digest): boolean {
  if (one.type === 'read' && other.type === 'read') return true;
  const isOneOwner = one.process === other.process && one.owner === other.owner;
  if (one.type === 'place' && other.type === 'place' && !(isOneOwner && one.token === other.token)) return true;
  if (!isOneOwner) return false;
  // A writer that also reads has a token for each of its locks.
  if (isReadWrite(one) && isReadWrite(other) && one.type !== other.type) return true;
  return one.token === other.token && (isInside(one, other, digest) || isInside(other, one, digest));
}

function isReadWrite({ type }: Tenure): boolean {
  return type === 'read' || type === 'write';
}

function isInside(inner: Tenure, outer: Tenure, digest: Digest): boolean {
  for (let tenure: Tenure | undefined = inner; tenure?.within !== undefined; tenure = digest.outer(tenure))
    if (tenure.within === outer.call) return true;
  return false;
}

function tooManyPermits(valid: readonly Valid[], next: Valid, total: number): Clash | undefined {
  const taken = valid.reduce((sum, { tenure }) => sum + tenure.permits, next.tenure.permits);
  return taken > total && valid.length > 0 ? { ...valid[0], most: total } : undefined;
}

/**
 * Callers may disagree about how many may hold the lock, and which of them was granted last is not known. So there must
 * be an order in which each of them found few enough before it. If there is any, the order of their numbers is one.
 */
function tooManyHolders(valid: readonly Valid[], next: Valid, { calls }: Digest): Clash | undefined {
  const leases = new Map<string, Valid & { most: number }>();
  for (const each of [...valid, next]) {
    const { owner, token, call } = each.tenure;
    const lease = `${owner} ${token}`;
    if (!leases.has(lease)) leases.set(lease, { ...each, most: calls.get(call)?.mostHolders ?? 1 });
  }
  const inOrder = [...leases.values()].sort((one, other) => one.most - other.most);
  const first = inOrder.findIndex(({ most }, found) => most <= found);
  return first < 0 ? undefined : { ...valid[0], most: inOrder[first].most };
}

function describe(lock: string, one: Clash, next: Valid): Violation {
  const { type } = next.tenure;
  const what =
    type === 'permits'
      ? `more than ${one.most} permits are held at once`
      : one.most === 1
        ? 'two leases are valid at once'
        : `more than ${one.most} hold it at once`;
  return {
    rule: 'no overlap',
    message: `${lock}: ${what}: ${one.tenure.shows} was valid until ${one.stretch.to.at.toFixed(1)} when ${next.tenure.shows} was granted`,
    at: next.stretch.from,
    lock,
    calls: [one.tenure.call, next.tenure.call],
  };
}
