import { hasLine } from '../line-backend.js';
import type { AcquireRequest, HeldType, OwnerRef } from '../lock-requests.js';
import { ExpiringMap, isPast, latestOf } from './expiring-map.js';

/** The token that a place of a line is granted with the lock. */
type GrantTerms = Required<Pick<AcquireRequest, 'type' | 'nonce' | 'reserve'>>;

/** Owners that wait for one lock, in order of arrival: the queue of a fair lock, waiting writers, or a line. */
export class WaitingOwners {
  private readonly deadlines = new ExpiringMap(isPast);
  /** The place in a line that was told of a release which left the lock free. */
  told: string | undefined;

  /** How many may hold the lock, for each place of a line that wants such a lock. */
  readonly permits = new Map<string, number>();

  /** What places are granted with the lock, if they asked for it. */
  readonly terms = new Map<string, GrantTerms>();

  /** Starts with one waiter, because a lock without waiters has no object of this class. */
  constructor(owner: string, deadline: number, now: number) {
    this.deadlines.set(owner, deadline, now);
  }

  isEmpty(now: number): boolean {
    return this.head(now) === undefined;
  }

  /** The first live waiter, and when it expires. */
  head(now: number): readonly [owner: string, deadline: number] | undefined {
    return this.deadlines.first(now);
  }

  /** The waiter that expires last. Only while {@link isEmpty} is false. */
  lastToExpire(now: number): readonly [owner: string, deadline: number] {
    return latestOf(this.deadlines.alive(now));
  }

  /** Adds a waiter at the end. One that waits already keeps its position. */
  addOrRefresh(owner: string, deadline: number, now: number): void {
    if (!this.refresh(owner, deadline, now)) this.deadlines.set(owner, deadline, now);
  }

  /** Returns false if this owner no longer waits. */
  refresh(owner: string, deadline: number, now: number): boolean {
    if (this.deadlines.get(owner, now) === undefined) return false;
    this.deadlines.set(owner, deadline, now);
    return true;
  }

  /** Returns false if this owner did not wait. */
  remove(owner: string): boolean {
    this.permits.delete(owner);
    this.terms.delete(owner);
    return this.deadlines.delete(owner);
  }

  owners(now: number): string[] {
    return this.deadlines.alive(now).map(([owner]) => owner);
  }
}

/** The registered waiters of all locks, by key. */
interface WaiterTables {
  readonly fairWaiters: ExpiringMap<WaitingOwners>;
  readonly waitingWriters: ExpiringMap<WaitingOwners>;
  readonly lines: ExpiringMap<WaitingOwners>;
}

/** Registers the owner of a busy request, if it wants to wait and its type has registered waiters. */
export function addWaiter(tables: WaiterTables, request: AcquireRequest, now: number): void {
  const waiters = waitersOf(tables, request.type);
  if (waiters === undefined || request.waiterTimeout <= 0) return;
  const deadline = now + request.waiterTimeout;
  const { key, type, owner, permits, nonce, reserve } = request;
  const known = waiters.get(key, now);
  const present = known ?? new WaitingOwners(owner, deadline, now);
  if (known === undefined) waiters.set(key, present, now);
  else present.addOrRefresh(owner, deadline, now);
  if (permits !== undefined) present.permits.set(owner, permits);
  else if (nonce !== undefined) present.terms.set(owner, { type, nonce, reserve });
}

/** Returns false if this waiter was no longer registered. */
export function refreshWaiter(tables: WaiterTables, waiter: OwnerRef, deadline: number, now: number): boolean {
  const { key, type, owner } = waiter;
  return waitersOf(tables, type)?.get(key, now)?.refresh(owner, deadline, now) ?? false;
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
  if (hasLine(type)) return tables.lines;
  return type === 'write' ? tables.waitingWriters : undefined;
}
