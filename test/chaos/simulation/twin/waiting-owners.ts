import { ExpiringMap, isPast } from '../../../../lib/backends/expiring-map.js';
import {
  FAR_BACK,
  hasLine,
  KEPT_FAR_BACK,
  LONGEST_GRANT,
  SHORTEST_GRANT,
} from '../../../../lib/backends/line-backend.js';
import {
  type AcquireRequest,
  type HeldType,
  isReadWrite,
  type OwnerRef,
  type WaiterRef,
} from '../../../../lib/backends/lock-requests.js';

/** What a place of a line is granted. */
export interface GrantTerms extends Pick<AcquireRequest, 'type' | 'nonce' | 'reserve' | 'permits'> {
  /** When it was asked for, and for how long the place has been kept since then. */
  readonly askedAt: number;
  readonly keptFor: number;
  /** Whether its client listened. A place of another client is only told. */
  readonly isHeard: boolean;
  readonly lease: number;
}

/** Owners that wait for one lock, in order of arrival: the queue of a fair lock, or a line. */
export class WaitingOwners {
  private readonly deadlines = new ExpiringMap(isPast);
  /** Which of them want to read or to write. */
  private readonly types = new Map<string, HeldType>();
  /**
   * Until when a free lock is left to those who wait outside the line. Set from a release that left it free until the
   * line is granted the lock.
   */
  headStartUntil: number | undefined;
  /** Until when a free lock is left to the first of the places that were notified of it. */
  toldUntil: number | undefined;

  /** What places are granted, except for those that want to read or to write. */
  readonly terms = new Map<string, GrantTerms>();

  /** Starts with one waiter, because a lock without waiters has no object of this class. */
  constructor(waiter: OwnerRef, deadline: number, now: number) {
    this.addOrRefresh(waiter, deadline, now);
  }

  isEmpty(now: number): boolean {
    return this.head(now) === undefined;
  }

  /** The first live waiter, and when it expires. */
  head(now: number): readonly [owner: string, deadline: number] | undefined {
    return this.deadlines.first(now);
  }

  /** The type of a waiter that wants to read or to write. */
  typeOf(owner: string): HeldType | undefined {
    return this.types.get(owner);
  }

  /** The first live waiter in front of `owner`, and when it expires. Readers go past other readers. */
  ahead({ owner, type }: OwnerRef, now: number): readonly [owner: string, deadline: number] | undefined {
    for (const waiter of this.deadlines.alive(now)) {
      if (waiter[0] === owner) return undefined;
      if (type !== 'read' || this.types.get(waiter[0]) !== 'read') return waiter;
    }
    return undefined;
  }

  /** When this waiter expires. */
  deadlineOf(owner: string, now: number): number | undefined {
    return this.deadlines.get(owner, now);
  }

  /** Adds a waiter at the end. One that waits already keeps its position. */
  addOrRefresh({ owner, type }: OwnerRef, deadline: number, now: number): void {
    if (!this.refresh(owner, deadline, now)) this.deadlines.set(owner, deadline, now);
    if (isReadWrite(type)) this.types.set(owner, type);
  }

  /** Returns false if this owner no longer waits. */
  refresh(owner: string, deadline: number, now: number): boolean {
    if (this.deadlines.get(owner, now) === undefined) return false;
    this.deadlines.set(owner, deadline, now);
    return true;
  }

  /** Puts another owner into the position of this one. Returns false if this one did not wait. */
  replace(former: string, owner: string, deadline: number, now: number): boolean {
    if (this.deadlines.get(former, now) === undefined) return false;
    for (const [other, end] of this.deadlines.alive(now)) {
      this.deadlines.delete(other);
      if (other === former) this.deadlines.set(owner, deadline, now);
      else if (other !== owner) this.deadlines.set(other, end, now);
    }
    return true;
  }

  /** Returns false if this owner did not wait. */
  remove(owner: string): boolean {
    this.types.delete(owner);
    this.terms.delete(owner);
    return this.deadlines.delete(owner);
  }

  /** Whether this waiter is behind at least `count` others. */
  isBehind(count: number, owner: string, now: number): boolean {
    return (
      this.deadlines.get(owner, now) !== undefined &&
      this.deadlines.oldest(count, now).every(([other]) => other !== owner)
    );
  }

  owners(now: number): string[] {
    return this.deadlines.alive(now).map(([owner]) => owner);
  }
}

/** The registered waiters of all locks, by key. */
interface WaiterTables {
  readonly fairWaiters: ExpiringMap<WaitingOwners>;
  readonly lines: ExpiringMap<WaitingOwners>;
}

/** For how long a waiter is kept: `longer` if it has a place far back in a line. */
type Kept = 'usual' | 'longer';

/**
 * Registers the owner of a busy request, if it wants to wait and its type has registered waiters. Otherwise returns
 * undefined.
 *
 * @param isHeard whether its client listens for messages to its place
 */
export function addWaiter(
  tables: WaiterTables,
  request: AcquireRequest,
  isHeard: boolean,
  now: number,
): Kept | undefined {
  const waiters = waitersOf(tables, request.type);
  if (waiters === undefined || request.waiterTimeout <= 0) return undefined;
  const deadline = now + request.waiterTimeout;
  const { key, type, owner, permits, nonce, reserve, leaseTime, grantLease = leaseTime } = request;
  const known = waiters.get(key, now);
  const present = known ?? new WaitingOwners(request, deadline, now);
  if (known === undefined) waiters.set(key, present, now);
  else present.addOrRefresh(request, deadline, now);
  if (hasLine(type) && !isReadWrite(type)) {
    const lease = Math.min(LONGEST_GRANT, Math.max(SHORTEST_GRANT, grantLease));
    present.terms.set(owner, { type, nonce, reserve, permits, lease, isHeard, askedAt: now, keptFor: 0 });
  }
  return refreshWaiter(tables, request, request.waiterTimeout, isHeard, now);
}

/** Returns undefined if this waiter was no longer registered. */
export function refreshWaiter(
  tables: WaiterTables,
  { key, type, owner, nonce }: WaiterRef,
  waiterTimeout: number,
  isHeard: boolean,
  now: number,
): Kept | undefined {
  const waiters = waitersOf(tables, type)?.get(key, now);
  const isFarBack = hasLine(type) && waiters?.isBehind(FAR_BACK, owner, now) === true;
  const keptFor = isFarBack ? waiterTimeout * KEPT_FAR_BACK : waiterTimeout;
  if (!waiters?.refresh(owner, now + keptFor, now)) return undefined;
  const terms = waiters.terms.get(owner);
  if (terms !== undefined) waiters.terms.set(owner, { ...terms, nonce, isHeard, askedAt: now, keptFor });
  return isFarBack ? 'longer' : 'usual';
}

/** Returns false if the waiter was not registered. */
export function removeWaiter(tables: WaiterTables, waiter: OwnerRef, now: number): boolean {
  const waiters = waitersOf(tables, waiter.type);
  const present = waiters?.get(waiter.key, now);
  if (!present?.remove(waiter.owner)) return false;
  if (present.isEmpty(now)) waiters?.delete(waiter.key);
  return true;
}

/** Undefined: waiters of this type are not registered. */
function waitersOf(tables: WaiterTables, type: HeldType): ExpiringMap<WaitingOwners> | undefined {
  if (type === 'fair') return tables.fairWaiters;
  return hasLine(type) ? tables.lines : undefined;
}
