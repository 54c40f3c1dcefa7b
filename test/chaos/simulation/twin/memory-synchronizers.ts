import { BackendError } from '../../../../lib/backends/backend-error.js';
import type { Subscription, Wake } from '../../../../lib/backends/subscription.js';
import type {
  PermitCounts,
  RequestId,
  SynchronizerBackend,
  SynchronizerKind,
  TakenPermits,
} from '../../../../lib/backends/synchronizer-backend.js';
import {
  MOST_PERMITS_SHOWN,
  type SemaphoreType,
  SHOWN_ID_DIGITS,
  type SynchronizerState,
  synchronizerState,
} from '../../../../lib/backends/synchronizer-state.js';
import type { MemoryStore } from './memory-store.js';
import type { ReleaseMessages } from './release-messages.js';
import type { SynchronizerStore } from './synchronizer-store.js';

/**
 * Semaphores and latches inside one process that behave as on Redis.
 *
 * @throws BackendError from every method after the backend was closed, or when the key is a lock
 */
export class MemorySynchronizers implements SynchronizerBackend {
  private readonly store: SynchronizerStore;

  /** @param now the store's time; throws BackendError once the backend is closed */
  constructor(
    private readonly memory: MemoryStore,
    private readonly messages: ReleaseMessages,
    private readonly now: () => number,
  ) {
    this.store = memory.synchronizers;
  }

  async takePermits(key: string, groups: readonly number[], request: RequestId, initial?: number): Promise<number> {
    const taken = this.once(key, request, 0, () => {
      this.setUp(key, 'semaphore', initial);
      const served = this.countServed(key, groups);
      if (served === 0) return this.servedNobody(key, 'semaphore');
      this.store.add(key, -sum(groups.slice(0, served)));
      return served;
    });
    return taken === 0 && !this.store.counters.has(key) ? -1 : taken;
  }

  async drainPermits(key: string, request: RequestId): Promise<number> {
    return this.once(key, request, 0, () => {
      const available = this.store.count(key);
      if (available <= 0) return undefined;
      this.store.counters.set(key, 0);
      return available;
    });
  }

  async availablePermits(key: string): Promise<number> {
    this.checkedNow(key);
    return this.store.count(key);
  }

  async addPermits(key: string, permits: number, request: RequestId, type?: SemaphoreType): Promise<void> {
    this.once(key, request, true, () => {
      if (type !== undefined) this.noteChange(key, type, permits);
      return this.add(key, permits);
    });
  }

  async addPermitsIfExists(key: string, permits: number, request: RequestId): Promise<boolean> {
    return this.once(key, request, false, () => (this.store.counters.has(key) ? this.add(key, permits) : undefined));
  }

  async trySetPermits(
    key: string,
    permits: number,
    request: RequestId,
    type: SemaphoreType = 'semaphore',
  ): Promise<boolean> {
    return this.once(key, request, false, () => {
      if (this.setUp(key, type, permits)) return true;
      this.store.noteType(key, type);
      return undefined;
    });
  }

  async takeLeasedPermits(
    key: string,
    groups: readonly (readonly string[])[],
    leaseTime: number,
    request: RequestId,
    initial?: number,
  ): Promise<TakenPermits> {
    const now = this.checkedNow(key);
    const expired = this.store.releaseExpired(key, now);
    let repeated = true;
    const sizes = groups.map((ids) => ids.length);
    const taken = this.once(key, request, 0, () => {
      repeated = false;
      this.setUp(key, 'permit-expirable-semaphore', initial);
      return this.countServed(key, sizes) || this.servedNobody(key, 'permit-expirable-semaphore');
    });
    // A repeated request takes no further permits. Groups that still have their permits get a fresh lease.
    const lost = groups.findIndex(([id]) => !this.store.leasesOf(key).has(id));
    const served = repeated && lost >= 0 ? lost : taken;
    for (const id of groups.slice(0, served).flat()) {
      if (!this.store.leasesOf(key).has(id)) this.store.add(key, -1);
      this.store.setLease(key, id, now + leaseTime);
    }
    if (expired > 0) this.publishPermits(key);
    if (repeated && served === 0) return { served, remaining: 0 };
    const deadlines = [...this.store.leasesOf(key).values()];
    const missing = served === 0 && !this.store.counters.has(key) ? { missing: true } : {};
    return { served, remaining: deadlines.length === 0 ? -1 : Math.min(...deadlines) - now, ...missing };
  }

  async giveLeasedPermits(key: string, ids: readonly string[], request: RequestId): Promise<readonly boolean[]> {
    const expired = this.store.releaseExpired(key, this.checkedNow(key));
    const given = this.once(
      key,
      request,
      ids.map(() => false),
      () => {
        const given = ids.map((id) => this.store.release(key, id));
        return given.includes(true) ? given : undefined;
      },
    );
    if (expired > 0 || given.includes(true)) this.publishPermits(key);
    return given;
  }

  async renewPermits(key: string, ids: readonly string[], leaseTime: number): Promise<readonly boolean[]> {
    const now = this.checkedNow(key);
    return ids.map((id) => {
      const isHeld = (this.store.leasesOf(key).get(id) ?? 0) > now;
      if (isHeld) this.store.setLease(key, id, now + leaseTime);
      return isHeld;
    });
  }

  async setPermits(key: string, permits: number, request: RequestId): Promise<void> {
    const expired = this.store.releaseExpired(key, this.checkedNow(key));
    this.once(key, request, true, () => {
      this.store.noteType(key, 'permit-expirable-semaphore');
      return this.add(key, permits - this.store.leasesOf(key).size - this.store.count(key));
    });
    if (expired > 0) this.publishPermits(key);
  }

  async countPermits(key: string): Promise<PermitCounts> {
    if (this.store.releaseExpired(key, this.checkedNow(key)) > 0) this.publishPermits(key);
    return { available: this.store.count(key), acquired: this.store.leasesOf(key).size };
  }

  async trySetCount(key: string, count: number, request: RequestId): Promise<boolean> {
    return this.once(key, request, false, () => {
      if (this.store.counters.has(key)) {
        this.store.noteType(key, 'count-down-latch');
        return undefined;
      }
      this.store.counters.set(key, count);
      this.store.notes.set(key, { type: 'count-down-latch', total: count });
      this.messages.publish(channelOf(key, 'latch'));
      return true;
    });
  }

  async countDown(key: string, steps: number, request: RequestId): Promise<void> {
    this.once(key, request, false, () => {
      const count = this.store.count(key);
      if (count === 0) return undefined;
      if (count > steps) this.store.add(key, -steps);
      else this.endLatch(key);
      return true;
    });
  }

  async getCount(key: string): Promise<number> {
    this.checkedNow(key);
    return this.store.count(key);
  }

  async deleteLatch(key: string, request: RequestId): Promise<boolean> {
    return this.once(key, request, false, () => (this.store.counters.has(key) ? this.endLatch(key) : undefined));
  }

  async inspect(key: string): Promise<SynchronizerState | undefined> {
    const now = this.now();
    const { counters, notes } = this.store;
    const leases = [...this.store.leasesOf(key)].sort(([, one], [, other]) => one - other);
    const held = leases.filter(([, deadline]) => deadline > now);
    if (this.memory.locks.get(key, now) !== undefined || (!counters.has(key) && leases.length === 0)) return undefined;
    const permits = held
      .slice(0, MOST_PERMITS_SHOWN)
      .map(([id, deadline]) => ({ id: id.slice(0, SHOWN_ID_DIGITS), remaining: deadline - now }));
    return synchronizerState(notes.get(key), this.store.count(key) + leases.length - held.length, held.length, permits);
  }

  subscribe(key: string, kind: SynchronizerKind, listener: (wake: Wake) => void): Subscription {
    return this.messages.subscribe(channelOf(key, kind), listener);
  }

  /** See {@link RequestMemory.once}. */
  private once<T>(key: string, request: RequestId, unchanged: T, execute: () => T | undefined): T {
    return this.store.requests.once(key, request, this.checkedNow(key), unchanged, execute);
  }

  /** Creates a missing semaphore. Returns false if it already exists, or if `permits` is undefined. */
  private setUp(key: string, type: SemaphoreType, permits: number | undefined): boolean {
    if (permits === undefined || this.store.counters.has(key)) return false;
    this.store.notes.set(key, { type, total: permits });
    return this.add(key, permits);
  }

  private servedNobody(key: string, type: SemaphoreType): undefined {
    if (this.store.counters.has(key)) this.store.noteType(key, type);
  }

  private noteChange(key: string, type: SemaphoreType, permits: number): void {
    const { counters, notes } = this.store;
    this.store.noteType(key, type);
    const total = counters.has(key) ? notes.get(key)?.total : 0;
    if (total !== undefined) notes.set(key, { type, total: total + permits });
  }

  /** How many of these groups, from the first one on, can be served with the available permits. */
  private countServed(key: string, groups: readonly number[]): number {
    let rest = this.store.count(key);
    const served = groups.findIndex((permits) => {
      rest -= permits;
      return rest < 0;
    });
    return served < 0 ? groups.length : served;
  }

  private add(key: string, permits: number): true {
    this.store.add(key, permits);
    if (permits > 0) this.publishPermits(key);
    return true;
  }

  private publishPermits(key: string): void {
    if (this.store.count(key) > 0) this.messages.publish(channelOf(key, 'semaphore'));
  }

  private endLatch(key: string): true {
    this.store.counters.delete(key);
    this.store.notes.delete(key);
    this.messages.publish(channelOf(key, 'latch'));
    return true;
  }

  /** Returns the time, after checking that the key is not a lock. */
  private checkedNow(key: string): number {
    const now = this.now();
    if (this.memory.locks.get(key, now) !== undefined) {
      throw new BackendError(`memory: ${key} is a lock; choose another name`, 'key', 'refused');
    }
    return now;
  }
}

function channelOf(key: string, kind: SynchronizerKind): string {
  return `${kind}:${key}`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
