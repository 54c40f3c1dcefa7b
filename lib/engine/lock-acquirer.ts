import type { LockType } from '../backends/lock-backend.js';
import type { AcquisitionContext } from './acquisition-context.js';
import type { HeldLock } from './lease/held-lock.js';
import type { LockLease } from './lease/lock-lease.js';
import type { AcquisitionQueue } from './queue/acquisition-queue.js';
import type { QueueTable } from './queue/queue-table.js';
import type { EnteredGate } from './scope/share-gate.js';
import type { AcquisitionTerms, LockOptions } from './terms/lock-options.js';

/** What an acquisition needs of the engine. */
export interface LockAcquirer {
  readonly context: AcquisitionContext;

  /** A new owner id. Not a method: it is passed on as a function. */
  readonly newOwner: () => string;

  /** @throws LockKeyError, which begins with `what`, when the prefix makes a name too long */
  keyOf(name: string, what: string): string;

  /**
   * Whether the caller runs in a live scope of this service: it may acquire what it needs in order to end, also during shutdown.
   *
   * @param hasScope the caller runs in a scope, of any service; default: asks
   * @throws LockAbortedError for any other caller once shutdown has begun
   */
  admit(what: string, name: string, hasScope?: boolean): boolean;

  acquire(name: string, options: LockOptions): Promise<LockLease>;

  /** The present queues; a lock about which nothing goes on has none. */
  readonly queues: QueueTable;

  newQueue(type: LockType, name: string, key: string): AcquisitionQueue;

  /** @param gates what each share has entered, where it is re-entry */
  createLease(locks: readonly HeldLock[], terms: AcquisitionTerms, gates?: readonly EnteredGate[]): LockLease;
}

/** The queue of a lock, a new one where nothing goes on about it. */
export function queueOf(
  engine: LockAcquirer,
  type: LockType,
  { name, key }: { readonly name: string; readonly key: string },
): AcquisitionQueue {
  return engine.queues.get(type, name) ?? engine.newQueue(type, name, key);
}
