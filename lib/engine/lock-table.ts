import type { HeldLock, LockWaiter } from './hold/held-lock.js';
import { LockLease } from './lease/lock-lease.js';
import { FairQueue } from './queue/fair-queue.js';
import { LockQueue } from './queue/lock-queue.js';
import type { AskingKind } from './queue/ways-of-asking.js';
import type { LocalQueue, QueueKind } from './queue-table.js';
import type { EnteredGate } from './scope/share-gate.js';
import type { Services } from './services.js';
import type { AcquisitionTerms } from './terms/lock-options.js';
import { holdEnded } from './trace/trace-hold.js';

/** One lock in one process, of any type that can be asked for. */
export type LockQueues = LockQueue | FairQueue;

const NO_GATES: readonly EnteredGate[] = [];

/** Creates the queues and leases of one service, and forgets them when they have ended. */
export class LockTable {
  constructor(readonly services: Services) {}

  /** The queue of a lock that is not a single flight, if anybody holds the lock or waits for it here. */
  find(kind: QueueKind, name: string): LockQueues | undefined {
    return this.services.work.queues.get(kind, name) as LockQueues | undefined; // newQueue() has created it
  }

  /** The queue of a lock, created if necessary. */
  queueOf(kind: QueueKind, name: string, key: string): LockQueues {
    return this.find(kind, name) ?? this.newQueue(kind, name, key);
  }

  /** @param gates for a re-entry: the gates that its shares have entered */
  createLease(
    locks: readonly HeldLock[],
    terms: AcquisitionTerms,
    gates: readonly EnteredGate[] = NO_GATES,
  ): LockLease {
    const lease = new LockLease(this.services, locks, terms, gates, this.leaseEnded);
    this.services.work.leases.push(lease);
    return lease;
  }

  /** Creates the lease of a waiter that gets the lock. */
  serve(waiter: LockWaiter, held: HeldLock): LockLease {
    const { terms } = waiter;
    const lease = this.createLease(held.alone, terms);
    if (terms.signal === undefined) this.services.examples.served(waiter, lease);
    return lease;
  }

  private newQueue(kind: QueueKind, name: string, key: string): LockQueues {
    const { services, queueEnded } = this;
    const queue =
      kind === 'fair'
        ? new FairQueue(services, name, key, queueEnded)
        : new LockQueue(services, name, key, kind as AskingKind, queueEnded); // flights do not come here
    services.work.queues.add(queue);
    return queue;
  }

  /** What a queue calls when it has ended. */
  readonly queueEnded = (queue: LocalQueue): void => {
    const { work, outages } = this.services;
    work.queues.remove(queue);
    outages.left();
    work.changed();
  };

  private readonly leaseEnded = (lease: LockLease, isLost: boolean): void => {
    const { examples, work } = this.services;
    holdEnded(lease, isLost);
    work.leases.remove(lease);
    if (lease.hasSignal) examples.forget();
    work.changed();
  };
}
