import { isPast, LapsingMap } from './lapsing-map.js';

/** The latest request of a client's session, with the answer that a repetition gets. */
interface LatestRequest {
  readonly sequence: number;
  readonly answer: unknown;
  readonly forgottenAt: number;
}

/** Semaphores and latches of one store. Like those in Redis, they stay until they are deleted. */
export class SynchronizerStore {
  readonly counters = new Map<string, number>();
  readonly requests = new LapsingMap<LatestRequest>(({ forgottenAt }, now) => isPast(forgottenAt, now));
  /** Of each semaphore, the ids of permits that are held, and when the lease of each ends. */
  private readonly held = new Map<string, Map<string, number>>();

  count(key: string): number {
    return this.counters.get(key) ?? 0;
  }

  add(key: string, permits: number): void {
    this.counters.set(key, this.count(key) + permits);
  }

  heldOf(key: string): ReadonlyMap<string, number> {
    return this.held.get(key) ?? new Map();
  }

  hold(key: string, id: string, deadline: number): void {
    const ids = this.held.get(key) ?? new Map<string, number>();
    this.held.set(key, ids.set(id, deadline));
  }

  /** False: it was not held. */
  free(key: string, id: string): boolean {
    const ids = this.held.get(key);
    if (!ids?.delete(id)) return false;
    if (ids.size === 0) this.held.delete(key);
    this.add(key, 1);
    return true;
  }

  /** Makes the permits available whose lease has ended. Gives how many that were. */
  reclaim(key: string, now: number): number {
    const lapsed = [...this.heldOf(key)].filter(([, deadline]) => isPast(deadline, now));
    for (const [id] of lapsed) this.free(key, id);
    return lapsed.length;
  }
}
