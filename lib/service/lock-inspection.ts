import type { LockState } from '../backends/lock-backend.js';

/** What `LockService.inspect` saw. @publicApi */
export interface LockInspection {
  readonly locked: boolean;
  readonly type: LockState['mode'];
  readonly owners: readonly InspectedOwner[];
  /** How many callers of this process wait for it; for a fair lock, how many of all processes. */
  readonly waiting: number;
  /** The last fencing token, where this service holds the lock or the lock is a fenced one. */
  readonly fencingToken?: number;
}

/** Somebody who holds a lock. @publicApi */
export interface InspectedOwner {
  /** `<clientId>:<n>`; of a Java process `<clientId>:<threadId>`. */
  readonly owner: string;
  /** Whether it is an acquisition of the service that was asked. */
  readonly mine: boolean;
  /** Milliseconds until its lease ends unless renewed; −1: it has no end. */
  readonly remainingTime: number;
}
