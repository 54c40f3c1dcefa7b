import type { HoldRecord, WaitRecord } from '../../backends/lock-backend.js';
import type { ActiveWork } from '../active-work.js';
import type { LockWaiter } from '../hold/held-lock.js';
import type { LocalQueue } from '../queue-table.js';
import type { RecordContents } from './client-record-writer.js';

/** How many holds, and how many waits, a record lists at most. */
const MOST_LISTED = 20;
/** How many waiters of a queue are searched at most for one whose arrival was recorded. */
const MOST_SEARCHED = 1_000;

/**
 * Collects the holds and waits of a service. A waiter does not read the clock when it arrives, because that took a
 * tenth of a hand-off's time. Instead, each check records the first and the last waiter of each queue. All waiters
 * ahead of a recorded waiter arrived earlier than it.
 */
export class ClientRecordContents {
  /** When waiters were first seen. */
  private readonly seen = new WeakMap<LockWaiter, number>();

  /** @param heldPermits the number of permits that the service holds and renews */
  constructor(
    private readonly work: ActiveWork,
    private readonly heldPermits: () => number,
  ) {}

  collect(now: number): RecordContents {
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
      waits: waits.slice(0, MOST_LISTED),
    };
  }

  /** The locks of the oldest leases, without re-entries, which share an older lock. */
  private holds(now: number): HoldRecord[] {
    const holds: HoldRecord[] = [];
    for (const lease of this.work.leases) {
      for (const { key, type, owner, since, shares } of lease.locks) {
        const { group, method } = lease.terms;
        if (shares[0] === lease) holds.push({ key, type, owner, group, method, heldFor: Math.round(now - since) });
      }
      if (holds.length >= MOST_LISTED) break;
    }
    return holds.slice(0, MOST_LISTED);
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
    for (let waiter: LockWaiter | undefined = first; waiter && count < MOST_SEARCHED; waiter = waiter.next, count++) {
      const seen = this.seen.get(waiter);
      if (seen !== undefined && seen < earliest) earliest = seen;
    }
    return earliest;
  }
}

function byWait(one: WaitRecord, other: WaitRecord): number {
  return other.waitedFor - one.waitedFor;
}
