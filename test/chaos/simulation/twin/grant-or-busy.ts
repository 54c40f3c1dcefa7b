import { type AcquireRequest, type Busy, isReadWrite, type OwnerRef } from '../../../../lib/backends/lock-requests.js';
import { ExclusiveRecord, type LockRecord, PermitsRecord, ReadWriteRecord, remaining } from './lock-record.js';
import type { MemoryStore } from './memory-store.js';
import { removeWaiter, type WaitingOwners } from './waiting-owners.js';

/** Why a request cannot be granted now; undefined when it can. */
export function findBusy(store: MemoryStore, request: AcquireRequest, now: number): Busy | undefined {
  const { key, type, owner } = request;
  const record = store.locks.get(key, now);
  if (record !== undefined) {
    if (record.isHeldBy(owner, type, now)) return undefined;
    if (!record.admits(owner, type, now, request.permits)) {
      const found = busy(record.awaited(now), now);
      return isReadWrite(type) === record.isReadWrite
        ? found
        : { ...found, heldAs: record.isReadWrite ? 'write' : 'reentrant' };
    }
  }
  const ahead = waiterAhead(store, request, record, now);
  return ahead && busy(ahead, now);
}

/** Grants a request for which {@link findBusy} found nothing. */
export function grant(store: MemoryStore, ownerRef: OwnerRef, leaseTime: number, now: number): void {
  const { key, type, owner } = ownerRef;
  const deadline = now + leaseTime;
  const record = store.locks.get(key, now);
  if (record !== undefined) {
    // What the owner holds already never becomes shorter.
    const former = record.isHeldBy(owner, type, now) ? record.endOf(owner, type, now) : 0;
    record.set(owner, type, Math.max(deadline, former), now);
  } else if (isReadWrite(type) || type === 'permits') {
    const created = type === 'permits' ? new PermitsRecord() : new ReadWriteRecord();
    created.set(owner, type, deadline, now);
    store.locks.set(key, created, now);
  } else {
    store.locks.set(key, new ExclusiveRecord(owner, deadline), now);
  }
  removeWaiter(store, ownerRef, now);
}

/** The waiter that goes before a request that the lock itself would admit, and when that waiter expires. */
function waiterAhead(
  store: MemoryStore,
  request: AcquireRequest,
  record: LockRecord | undefined,
  now: number,
): ReturnType<WaitingOwners['head']> {
  if (request.type === 'fair') {
    const head = store.fairWaiters.get(request.key, now)?.head(now);
    return head?.[0] === request.owner ? undefined : head;
  }
  // Before anybody else acquires a free lock, its line is served.
  if (!isReadWrite(request.type) || request.pastLine) return undefined;
  if (request.type !== 'read' && request.waiterTimeout === 0) return undefined;
  // A writer that also wants to read must not wait for those who wait for it.
  if (record?.isHeldBy(request.owner, 'write', now)) return undefined;
  return store.lines.get(request.key, now)?.ahead(request, now);
}

function busy([holder, deadline]: readonly [owner: string, deadline: number], now: number): Busy {
  return { acquired: false, remaining: remaining(deadline, now), holder };
}
