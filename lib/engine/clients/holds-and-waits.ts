import type { HoldRecord, WaitRecord } from '../../backends/lock-backend.js';
import type { LockWaiter } from '../lease/held-lock.js';
import type { LockLease } from '../lease/lock-lease.js';
import type { LocalQueue, QueueTable } from '../queue/queue-table.js';
import type { Stock } from './client-record-writer.js';

/** How many holds and waits a record lists. */
const MOST_TOLD = 20;
/** How many waiters of a queue are searched for one whose arrival was noted. */
const MOST_LOOKED_AT = 1_000;

/** The locks that a service holds and waits for. */
interface Work {
  readonly queues: QueueTable;
  /** In the order in which they were given. */
  readonly leases: Iterable<LockLease>;
}

/**
 * Looks at what a service holds and waits for. A waiter does not read the clock when it arrives, because that took a
 * tenth of a hand-off's time: the first and the last waiter of each queue are noted at every look instead, and all that
 * stand before a noted one came earlier.
 */
export class HoldsAndWaits {
  /** When waiters were first seen. */
  private readonly seen = new WeakMap<LockWaiter, number>();

  /** @param heldPermits how many permits the service holds, of those that it renews */
  constructor(
    private readonly work: Work,
    private readonly heldPermits: () => number,
  ) {}

  take(now: number): Stock {
    const waits: WaitRecord[] = [];
    let held = this.heldPermits();
    let waiting = 0;
    this.work.queues.forEach((queue) => {
      held += queue.holders.length;
      waiting += queue.waiting.length;
      const wait = this.waitAt(queue, now);
      if (wait !== undefined) waits.push(wait);
    });
    waits.sort(byWait);
    return {
      held,
      waiting,
      longestWait: waits[0]?.waitedFor ?? 0,
      holds: this.holds(now),
      waits: waits.slice(0, MOST_TOLD),
    };
  }

  /** The locks of the oldest leases; not those of re-entry, which share an older one's. */
  private holds(now: number): HoldRecord[] {
    const holds: HoldRecord[] = [];
    for (const lease of this.work.leases) {
      for (const { key, type, owner, since, shares } of lease.locks) {
        const { group, method } = lease.terms;
        if (shares[0] === lease) holds.push({ key, type, owner, group, method, heldFor: Math.round(now - since) });
      }
      if (holds.length >= MOST_TOLD) break;
    }
    return holds.slice(0, MOST_TOLD);
  }

  private waitAt({ key, waiting }: LocalQueue, now: number): WaitRecord | undefined {
    const { first, last, length } = waiting;
    if (first === undefined || last === undefined) return undefined;
    for (const waiter of [first, last]) if (!this.seen.has(waiter)) this.seen.set(waiter, now);
    const { type, group, method } = first.terms;
    return { key, type, group, method, waiters: length, waitedFor: Math.round(now - this.arrival(first, now)) };
  }

  private arrival(first: LockWaiter, now: number): number {
    let earliest = now;
    let count = 0;
    for (let waiter: LockWaiter | undefined = first; waiter && count < MOST_LOOKED_AT; waiter = waiter.next, count++) {
      const seen = this.seen.get(waiter);
      if (seen !== undefined && seen < earliest) earliest = seen;
    }
    return earliest;
  }
}

function byWait(one: WaitRecord, other: WaitRecord): number {
  return other.waitedFor - one.waitedFor;
}
