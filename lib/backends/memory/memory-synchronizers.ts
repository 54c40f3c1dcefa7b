import { BackendError, type Subscription, type Wake } from '../lock-backend.js';
import {
  type PermitCounts,
  REQUEST_LIFETIME,
  type RequestId,
  type SynchronizerBackend,
  type SynchronizerKind,
  type TakenPermits,
} from '../synchronizer-backend.js';
import type { MemoryStore } from './memory-store.js';
import type { SynchronizerStore } from './synchronizer-store.js';

/** What the backend lends to its semaphores and latches. */
export interface Surroundings {
  readonly store: MemoryStore;
  /** @throws BackendError when the backend was closed */
  now(): number;
  publish(channel: string): void;
  listen(channel: string, listener: (wake: Wake) => void): Subscription;
}

/** Semaphores and latches inside one process, with the semantics that they have on Redis. */
export class MemorySynchronizers implements SynchronizerBackend {
  constructor(private readonly surroundings: Surroundings) {}

  async takePermits(key: string, groups: readonly number[], request: RequestId): Promise<number> {
    return this.once(key, request, 0, () => {
      const served = this.fitting(key, groups);
      if (served === 0) return undefined;
      this.objects.add(key, -sum(groups.slice(0, served)));
      return served;
    });
  }

  async drainPermits(key: string, request: RequestId): Promise<number> {
    return this.once(key, request, 0, () => {
      const available = this.objects.count(key);
      if (available <= 0) return undefined;
      this.objects.counters.set(key, 0);
      return available;
    });
  }

  async availablePermits(key: string): Promise<number> {
    this.open(key);
    return this.objects.count(key);
  }

  async addPermits(key: string, permits: number, request: RequestId): Promise<void> {
    this.once(key, request, true, () => this.add(key, permits));
  }

  async addPermitsIfExists(key: string, permits: number, request: RequestId): Promise<boolean> {
    return this.once(key, request, false, () => (this.objects.counters.has(key) ? this.add(key, permits) : undefined));
  }

  async trySetPermits(key: string, permits: number, request: RequestId): Promise<boolean> {
    return this.once(key, request, false, () => (this.objects.counters.has(key) ? undefined : this.add(key, permits)));
  }

  async takeLeasedPermits(
    key: string,
    groups: readonly (readonly string[])[],
    leaseTime: number,
    request: RequestId,
  ): Promise<TakenPermits> {
    const now = this.open(key);
    const reclaimed = this.objects.reclaim(key, now);
    let repeated = true;
    const sizes = groups.map((ids) => ids.length);
    const taken = this.once(key, request, 0, () => {
      repeated = false;
      return this.fitting(key, sizes) || undefined;
    });
    // A repetition takes nothing more: groups that still have their permits get a fresh lease.
    const lapsed = groups.findIndex(([id]) => !this.objects.heldOf(key).has(id));
    const served = repeated && lapsed >= 0 ? lapsed : taken;
    for (const id of groups.slice(0, served).flat()) {
      if (!this.objects.heldOf(key).has(id)) this.objects.add(key, -1);
      this.objects.hold(key, id, now + leaseTime);
    }
    if (reclaimed > 0) this.tellPermits(key);
    if (repeated && served === 0) return { served, remaining: 0 };
    const deadlines = [...this.objects.heldOf(key).values()];
    return { served, remaining: deadlines.length === 0 ? -1 : Math.min(...deadlines) - now };
  }

  async giveLeasedPermits(key: string, ids: readonly string[], request: RequestId): Promise<readonly boolean[]> {
    const reclaimed = this.objects.reclaim(key, this.open(key));
    const given = this.once(
      key,
      request,
      ids.map(() => false),
      () => {
        const given = ids.map((id) => this.objects.free(key, id));
        return given.includes(true) ? given : undefined;
      },
    );
    if (reclaimed > 0 || given.includes(true)) this.tellPermits(key);
    return given;
  }

  async renewPermits(key: string, ids: readonly string[], leaseTime: number): Promise<readonly boolean[]> {
    const now = this.open(key);
    return ids.map((id) => {
      const isHeld = (this.objects.heldOf(key).get(id) ?? 0) > now;
      if (isHeld) this.objects.hold(key, id, now + leaseTime);
      return isHeld;
    });
  }

  async setPermits(key: string, permits: number, request: RequestId): Promise<void> {
    const reclaimed = this.objects.reclaim(key, this.open(key));
    this.once(key, request, true, () =>
      this.add(key, permits - this.objects.heldOf(key).size - this.objects.count(key)),
    );
    if (reclaimed > 0) this.tellPermits(key);
  }

  async countPermits(key: string): Promise<PermitCounts> {
    if (this.objects.reclaim(key, this.open(key)) > 0) this.tellPermits(key);
    return { available: this.objects.count(key), acquired: this.objects.heldOf(key).size };
  }

  async trySetCount(key: string, count: number, request: RequestId): Promise<boolean> {
    return this.once(key, request, false, () => {
      if (this.objects.counters.has(key)) return undefined;
      this.objects.counters.set(key, count);
      this.surroundings.publish(channelOf(key, 'latch'));
      return true;
    });
  }

  async countDown(key: string, steps: number, request: RequestId): Promise<void> {
    this.once(key, request, false, () => {
      const count = this.objects.count(key);
      if (count === 0) return undefined;
      if (count > steps) this.objects.add(key, -steps);
      else this.endLatch(key);
      return true;
    });
  }

  async getCount(key: string): Promise<number> {
    this.open(key);
    return this.objects.count(key);
  }

  async deleteLatch(key: string, request: RequestId): Promise<boolean> {
    return this.once(key, request, false, () => (this.objects.counters.has(key) ? this.endLatch(key) : undefined));
  }

  subscribe(key: string, kind: SynchronizerKind, listener: (wake: Wake) => void): Subscription {
    return this.surroundings.listen(channelOf(key, kind), listener);
  }

  private get objects(): SynchronizerStore {
    return this.surroundings.store.synchronizers;
  }

  /** Runs what a request changes, once; what changes nothing gives undefined, and is not remembered. */
  private once<T>(key: string, { session, sequence, repeated }: RequestId, unchanged: T, work: () => T | undefined): T {
    const now = this.open(key);
    const id = `${session} ${key}`;
    const latest = this.objects.requests.get(id, now);
    if (latest !== undefined && latest.sequence >= sequence) return latest.answer as T;
    const answer = work() ?? (repeated ? unchanged : undefined);
    if (answer === undefined) return unchanged;
    this.objects.requests.set(id, { sequence, answer, forgottenAt: now + REQUEST_LIFETIME }, now);
    return answer;
  }

  /** How many of these groups, from the first on, there are permits for. */
  private fitting(key: string, groups: readonly number[]): number {
    let rest = this.objects.count(key);
    const served = groups.findIndex((permits) => {
      rest -= permits;
      return rest < 0;
    });
    return served < 0 ? groups.length : served;
  }

  private add(key: string, permits: number): true {
    this.objects.add(key, permits);
    if (permits > 0) this.tellPermits(key);
    return true;
  }

  private tellPermits(key: string): void {
    if (this.objects.count(key) > 0) this.surroundings.publish(channelOf(key, 'semaphore'));
  }

  private endLatch(key: string): true {
    this.objects.counters.delete(key);
    this.surroundings.publish(channelOf(key, 'latch'));
    return true;
  }

  /** The time, when the backend is open and the key is free for what is no lock. */
  private open(key: string): number {
    const now = this.surroundings.now();
    if (this.surroundings.store.holds.get(key, now) !== undefined) {
      throw new BackendError(`memory: ${key} is a lock: choose another name`, 'key', 'refused');
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
