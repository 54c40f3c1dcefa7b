import type { LockState } from '../backends/lock-backend.js';
import type { SynchronizerType } from '../backends/synchronizer-state.js';
import type { HolderClient } from '../engine/clients/describe-holder.js';

/** The result of `LockService.inspect`. @publicApi */
export interface LockInspection {
  readonly locked: boolean;
  /** If the name is that of a semaphore or latch, its type. Then `locked` is false, and there are no owners. */
  readonly type: LockState['mode'] | SynchronizerType;
  readonly owners: readonly InspectedOwner[];
  /**
   * How many callers wait for it. For a fair lock, this is exact. For other locks, it is the callers of this process
   * and those in the records of other processes, which are up to ten seconds old. For semaphores and latches, it is
   * only the callers of this process.
   */
  readonly waiting: number;
  /** The last fencing token, if this service holds the lock or the lock is a fenced one. */
  readonly fencingToken?: number;
  /** The state of a semaphore or latch. */
  readonly synchronizer?: SynchronizerInspection;
}

/** A semaphore or latch. @publicApi */
export interface SynchronizerInspection {
  /**
   * `counter` is a number that may be a semaphore or a latch. The type is known if this library has set it up or has
   * found it without permits, or if permits with a lease are held.
   */
  readonly type: SynchronizerType;
  /**
   * The available permits of a semaphore, or the remaining steps of a latch. It is negative if more permits were
   * removed than were available.
   */
  readonly count: number;
  /**
   * All permits, including those that are taken, or the initial count of a latch. Undefined if it is not known. For
   * permits without leases and for latches, it is the number that this library has set, which is wrong if Redisson has
   * changed it since.
   */
  readonly total?: number;
  /** How many permits are taken. It is exact if they have leases. Otherwise it is computed from `total`. */
  readonly taken?: number;
  /** Up to 100 of the permits that are held with a lease, in the order in which their leases end. */
  readonly permits: readonly InspectedPermit[];
}

/** A permit that is held with a lease. @publicApi */
export interface InspectedPermit {
  /** The first 16 of the 32 digits of its id. They are not enough to release it. */
  readonly id: string;
  /** Whether the service that you called holds it. */
  readonly mine: boolean;
  /** Milliseconds until its lease ends unless renewed; −1: it has no end. */
  readonly remainingTime: number;
  /** Who holds it. Undefined if the client has no record or uses Redisson. */
  readonly client?: HolderClient;
}

/** Somebody who holds a lock. @publicApi */
export interface InspectedOwner {
  /**
   * `<clientId>:<n>`; of a Java process `<clientId>:<threadId>`; of a lock that was detached `<clientId>:t-<hash of its
   * ticket>`.
   */
  readonly owner: string;
  /** Whether it belongs to the service that you called. */
  readonly mine: boolean;
  /** Milliseconds until its lease ends unless renewed; −1: it has no end. */
  readonly remainingTime: number;
  /**
   * The client that holds the lock. Undefined if it has no record, because its process has ended, has not held a lock
   * for a second yet, or uses a quorum or Redisson.
   */
  readonly client?: HolderClient;
  /** It has no record, and its id has the form that Redisson uses. */
  readonly redisson?: true;
  /** No process holds the lock. `client` has detached it, and it can be adopted until its lease ends. */
  readonly detached?: true;
}

/** The owners that `LockService.forceRelease` removes. @publicApi */
export interface ForceReleaseOptions {
  /**
   * Takes the lock only from these owners, which `inspect` or `list` have returned. Default: from all owners.
   */
  readonly owners?: readonly string[] | undefined;
  /**
   * The `fencingToken` that was returned with `owners`. The owner of a Java process is a thread, which may have
   * acquired the lock again by now. If the lock has had another token since, nothing is released. Only tokens of
   * `fenced` locks are compared.
   */
  readonly fencingToken?: number | undefined;
}

/** Which locks `LockService.list` lists. @publicApi */
export interface ListOptions {
  /**
   * A pattern for the names, as in Redis: `*`, `?`, `[abc]`, `\` before a character that is taken literally.
   * Default: all.
   */
  readonly match?: string;
  /** The `cursor` of the previous page. Default: the first page. */
  readonly cursor?: string | undefined;
  /** About how many locks a page has, from 1 to 10,000. Default 100. */
  readonly count?: number;
}

/** One page of `LockService.list`. @publicApi */
export interface LockList {
  readonly locks: readonly ListedLock[];
  /**
   * The semaphores and latches that this library has set up or has found without permits, whether or not permits are
   * taken.
   */
  readonly synchronizers: readonly ListedSynchronizer[];
  /** The cursor for the next page. Undefined on the last page. */
  readonly cursor: string | undefined;
}

/** A semaphore or latch. @publicApi */
export interface ListedSynchronizer extends SynchronizerInspection {
  /** Without the `keyPrefix`. */
  readonly name: string;
  /** How many callers of this process wait for it. */
  readonly waiting: number;
}

/** A lock that is held. @publicApi */
export interface ListedLock {
  /** Without the `keyPrefix`. */
  readonly name: string;
  readonly type: Exclude<LockState['mode'], 'free'>;
  readonly owners: readonly InspectedOwner[];
  /** Milliseconds until the last of its leases ends unless renewed; −1: it has no end. */
  readonly remainingTime: number;
  /** As in {@link LockInspection.waiting}. */
  readonly waiting: number;
  /** As in {@link LockInspection.fencingToken}. */
  readonly fencingToken?: number;
}

/** The state of a semaphore or latch in words: `7 of 10 taken`, `3 of 4 steps left`. */
export function synchronizerText({ type, count, total, taken }: SynchronizerInspection): string {
  if (type === 'counter') return `a number: ${count}`;
  if (type === 'count-down-latch')
    return total === undefined ? `${count} steps left` : `${count} of ${total} steps left`;
  return taken === undefined ? `${count} available` : `${taken} of ${total} taken`;
}
