import { ExpiringMap, isPast } from '../../../../lib/backends/expiring-map.js';
import { REQUEST_LIFETIME, type RequestId } from '../../../../lib/backends/synchronizer-backend.js';
import type { SynchronizerNote } from '../../../../lib/backends/synchronizer-state.js';

/** Semaphores and latches of one store. Like those in Redis, they stay until they are deleted. */
export class SynchronizerStore {
  /** Available permits of semaphores, and counts of latches. */
  readonly counters = new Map<string, number>();
  /** The type of each semaphore and latch, and its total, as far as they are known. */
  readonly notes = new Map<string, SynchronizerNote>();
  readonly requests = new RequestMemory();
  /** For each semaphore, the ids of permits that are held, and when each lease ends. */
  private readonly leases = new Map<string, Map<string, number>>();

  count(key: string): number {
    return this.counters.get(key) ?? 0;
  }

  add(key: string, permits: number): void {
    this.counters.set(key, this.count(key) + permits);
  }

  /** Records the type of an object. If that type was not recorded before, the total becomes unknown. */
  noteType(key: string, type: SynchronizerNote['type']): void {
    if (this.notes.get(key)?.type !== type) this.notes.set(key, { type, total: undefined });
  }

  leasesOf(key: string): ReadonlyMap<string, number> {
    return this.leases.get(key) ?? new Map();
  }

  setLease(key: string, id: string, deadline: number): void {
    const ids = this.leases.get(key) ?? new Map<string, number>();
    this.leases.set(key, ids.set(id, deadline));
  }

  /** Makes a held permit available. Returns false if it was not held. */
  release(key: string, id: string): boolean {
    const ids = this.leases.get(key);
    if (!ids?.delete(id)) return false;
    if (ids.size === 0) this.leases.delete(key);
    this.add(key, 1);
    return true;
  }

  /** Releases permits whose lease has ended. Returns how many. */
  releaseExpired(key: string, now: number): number {
    const expired = [...this.leasesOf(key)].filter(([, deadline]) => isPast(deadline, now));
    for (const [id] of expired) this.release(key, id);
    return expired.length;
  }
}

/** The latest request of a session about one object, with the answer that a repetition gets. */
interface LatestRequest {
  readonly sequence: number;
  readonly answer: unknown;
  readonly forgottenAt: number;
}

/** Remembers answered requests, so that a repeated one changes nothing. */
export class RequestMemory {
  private readonly latest = new ExpiringMap<LatestRequest>(({ forgottenAt }, now) => isPast(forgottenAt, now));

  /** How many requests are remembered: at most one for each session and object. */
  get size(): number {
    return this.latest.size;
  }

  /**
   * Executes a request. If it or a later one is remembered, returns the remembered answer instead.
   *
   * @param unchanged the answer if nothing changed; remembered only if an earlier copy of the request may still arrive
   * @param execute returns undefined when it changed nothing
   */
  once<T>(key: string, request: RequestId, now: number, unchanged: T, execute: () => T | undefined): T {
    const { session, sequence, repeated } = request;
    const id = `${session} ${key}`;
    const latest = this.latest.get(id, now);
    if (latest !== undefined && latest.sequence >= sequence) return latest.answer as T;
    const answer = execute() ?? (repeated ? unchanged : undefined);
    if (answer === undefined) return unchanged;
    this.latest.set(id, { sequence, answer, forgottenAt: now + REQUEST_LIFETIME }, now);
    return answer;
  }
}
