import type { AcquireRequest, HeldType, OwnerRef } from '../lock-requests.js';
import type { ExpiringMap } from './expiring-map.js';
import type { MemoryStore } from './memory-store.js';
import { WaitingOwners } from './waiting-owners.js';

/** Registers the owner of a busy request, if it wants to wait and its type has registered waiters. */
export function addWaiter(store: MemoryStore, request: AcquireRequest, now: number): void {
  const waiters = waitersOf(store, request.type);
  if (waiters === undefined || request.waiterTimeout <= 0) return;
  const deadline = now + request.waiterTimeout;
  const present = waiters.get(request.key, now);
  if (present === undefined) waiters.set(request.key, new WaitingOwners(request.owner, deadline, now), now);
  else present.addOrRefresh(request.owner, deadline, now);
}

/** False: this waiter was no longer registered. */
export function refreshWaiter(store: MemoryStore, waiter: OwnerRef, deadline: number, now: number): boolean {
  const { key, type, owner } = waiter;
  return waitersOf(store, type)?.get(key, now)?.refresh(owner, deadline, now) ?? false;
}

/** False: it was not registered. */
export function removeWaiter(store: MemoryStore, waiter: OwnerRef, now: number): boolean {
  const waiters = waitersOf(store, waiter.type);
  const present = waiters?.get(waiter.key, now);
  if (!present?.remove(waiter.owner)) return false;
  if (present.isEmpty(now)) waiters?.delete(waiter.key);
  return true;
}

/** Undefined: waiters of this type are not registered. */
function waitersOf(store: MemoryStore, type: HeldType): ExpiringMap<WaitingOwners> | undefined {
  if (type === 'fair') return store.fairWaiters;
  return type === 'write' ? store.waitingWriters : undefined;
}
