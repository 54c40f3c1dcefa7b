import type { AcquireRequest, Busy, LockType, OwnerRef } from '../lock-backend.js';
import { ExclusiveHold } from './exclusive-hold.js';
import { type Hold, isReadWrite, remaining } from './hold.js';
import type { LapsingMap } from './lapsing-map.js';
import type { MemoryStore } from './memory-store.js';
import { Places } from './places.js';
import { ReadWriteHold } from './read-write-hold.js';

/** What stands in the way of a request; undefined when it can be granted now. */
export function obstacle(store: MemoryStore, request: AcquireRequest, now: number): Busy | undefined {
  const { key, type, owner } = request;
  const hold = store.holds.get(key, now);
  if (hold !== undefined) {
    if (hold.has(owner, type, now)) return undefined;
    if (!hold.admits(owner, type, now)) return busy(hold.longest(now), now);
  }
  const preferred = whoGoesFirst(store, request, hold, now);
  return preferred && busy(preferred, now);
}

/** Enters a request that nothing stands in the way of. */
export function grant(store: MemoryStore, holding: OwnerRef, leaseTime: number, now: number): void {
  const { key, type, owner } = holding;
  const deadline = now + leaseTime;
  const hold = store.holds.get(key, now);
  if (hold !== undefined) {
    hold.put(owner, type, deadline, now);
  } else if (isReadWrite(type)) {
    const fresh = new ReadWriteHold();
    fresh.put(owner, type, deadline, now);
    store.holds.set(key, fresh, now);
  } else {
    store.holds.set(key, new ExclusiveHold(owner, deadline), now);
  }
  leave(store, holding, now);
}

/** Where owners of this type wait, if they have a place at all. */
export function waitingRoom(store: MemoryStore, type: LockType): LapsingMap<Places> | undefined {
  if (type === 'fair') return store.queues;
  return type === 'write' ? store.writers : undefined;
}

export function keepPlace(store: MemoryStore, request: AcquireRequest, now: number): void {
  const rooms = waitingRoom(store, request.type);
  if (rooms === undefined || request.fairWaitTimeout <= 0) return;
  const deadline = now + request.fairWaitTimeout;
  const places = rooms.get(request.key, now);
  if (places === undefined) rooms.set(request.key, new Places(request.owner, deadline, now), now);
  else places.keep(request.owner, deadline, now);
}

/** False: there was no place. */
export function leave(store: MemoryStore, place: OwnerRef, now: number): boolean {
  const rooms = waitingRoom(store, place.type);
  const places = rooms?.get(place.key, now);
  if (!places?.leave(place.owner)) return false;
  if (places.isOver(now)) rooms?.delete(place.key);
  return true;
}

/** Who has a place before a request for a lock that would have room for it, and until when. */
function whoGoesFirst(
  store: MemoryStore,
  request: AcquireRequest,
  hold: Hold | undefined,
  now: number,
): ReturnType<Places['head']> {
  if (request.type === 'fair') {
    const head = store.queues.get(request.key, now)?.head(now);
    return head?.[0] === request.owner ? undefined : head;
  }
  if (request.type !== 'read' || !request.preferWriters) return undefined;
  // A writer that wants to read as well must not wait for the writers that wait for it.
  if (hold?.has(request.owner, 'write', now)) return undefined;
  return store.writers.get(request.key, now)?.longest(now);
}

function busy([holder, deadline]: readonly [owner: string, deadline: number], now: number): Busy {
  return { acquired: false, remaining: remaining(deadline, now), holder };
}
