import type { LockState } from '../backends/lock-backend.js';
import type { SynchronizerType } from '../backends/synchronizer-state.js';
import type { HolderClient } from '../engine/clients/describe-holder.js';

/** The result of `LockService.inspect`. @publicApi */
export interface LockInspection {
  readonly locked: boolean;
  /** Where the name is that of a semaphore or latch, its type; then `locked` is false, and there are no owners. */
  readonly type: LockState['mode'] | SynchronizerType;
  readonly owners: readonly InspectedOwner[];
  /**
   * How many callers wait for it: those of this process; of a lock, those of other processes as they have told about
   * themselves in the last ten seconds; for a fair lock, all of them exactly.
   */
  readonly waiting: number;
  /** The last fencing token, where this service holds the lock or the lock is a fenced one. */
  readonly fencingToken?: number;
  /** The state of a semaphore or latch. */
  readonly synchronizer?: SynchronizerInspection;
  /** The kept result of a single flight of this name, whether or not the lock is held. */
  readonly result?: ResultInspection;
}

/** A result of a single flight that is kept. Its value is never shown. @publicApi */
export interface ResultInspection {
  /** In bytes, as it is stored. */
  readonly size: number;
  /** Milliseconds for which it is kept. */
  readonly remainingTime: number;
}

/** A semaphore or latch. @publicApi */
export interface SynchronizerInspection {
  /**
   * `counter`: a number that may be a semaphore or a latch. Only those are known better that this library has set up,
   * or found without permits; and semaphores of which permits with a lease are held.
   */
  readonly type: SynchronizerType;
  /**
   * How many permits of a semaphore are available: below zero after more were taken away. Of a latch, how many steps
   * are left.
   */
  readonly count: number;
  /**
   * How many permits there are, including those that are taken; the count that a latch was given. Undefined: not known.
   * Of permits without leases and of latches, it is what this library has set: it may be wrong where Redisson sets or
   * adds some, too.
   */
  readonly total?: number;
  /** How many permits are taken: exactly, where they have leases; else as far as `total` is right. */
  readonly taken?: number;
  /** Up to 100 of the permits that are held under a lease, the one whose lease ends first before the others. */
  readonly permits: readonly InspectedPermit[];
}

/** A permit that is held under a lease. @publicApi */
export interface InspectedPermit {
  /** The first 16 of the 32 digits of its id: nobody can release it with them. */
  readonly id: string;
  /** Whether the service that was asked holds it. */
  readonly mine: boolean;
  /** Milliseconds until its lease ends unless renewed; −1: it has no end. */
  readonly remainingTime: number;
  /** Who holds it. Undefined: the client has no record, or is Redisson's. */
  readonly client?: HolderClient;
}

/** Somebody who holds a lock. @publicApi */
export interface InspectedOwner {
  /**
   * `<clientId>:<n>`; of a Java process `<clientId>:<threadId>`; of a lock that was detached `<clientId>:t-<hash of its
   * ticket>`.
   */
  readonly owner: string;
  /** Whether it is an acquisition of the service that was asked. */
  readonly mine: boolean;
  /** Milliseconds until its lease ends unless renewed; −1: it has no end. */
  readonly remainingTime: number;
  /**
   * Who that is. Undefined: the client has no record, because its process has ended, has held nothing for a second yet,
   * uses a quorum, or is Redisson's.
   */
  readonly client?: HolderClient;
  /** It has no record, and an id as clients of Redisson have it. */
  readonly redisson?: true;
  /** No process holds the lock: `client` has detached it, and it waits to be adopted until its lease ends. */
  readonly detached?: true;
}

/** Whom `LockService.forceRelease` removes. @publicApi */
export interface ForceReleaseOptions {
  /**
   * The lock is taken from these owners alone, as `inspect` or `list` have shown them. Default: from all that hold it.
   */
  readonly owners?: readonly string[] | undefined;
  /**
   * With `owners`: the `fencingToken` that was shown with them. The owner of a Java process is a thread, and may hold
   * the lock once more by now: where the lock has had another token since, nothing is released. It is compared for
   * `fenced` locks.
   */
  readonly fencingToken?: number | undefined;
}

/** Which locks `LockService.list` lists. @publicApi */
export interface ListOptions {
  /**
   * A pattern for the names, as in Redis: `*`, `?`, `[abc]`, `\` before a character that is to be taken verbatim.
   * Default: all.
   */
  readonly match?: string;
  /** The `cursor` of the page before. Default: the first page. */
  readonly cursor?: string | undefined;
  /** About how many locks a page has, from 1 to 10,000. Default 100. */
  readonly count?: number;
}

/** One page of `LockService.list`. @publicApi */
export interface LockList {
  readonly locks: readonly ListedLock[];
  /**
   * Semaphores and latches that exist, whether or not permits are taken: those that this library has set up, or found
   * without permits.
   */
  readonly synchronizers: readonly ListedSynchronizer[];
  /** Results of single flights that are kept. */
  readonly results: readonly ListedResult[];
  /** For the next page; undefined: this was the last one. */
  readonly cursor: string | undefined;
}

/** A semaphore or latch. @publicApi */
export interface ListedSynchronizer extends SynchronizerInspection {
  /** Without the `keyPrefix`. */
  readonly name: string;
  /** How many callers of this process wait for it. */
  readonly waiting: number;
}

/** A result of a single flight that is kept. @publicApi */
export interface ListedResult extends ResultInspection {
  /** The name of the flight, without the `keyPrefix`. */
  readonly name: string;
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

/** What remains of a semaphore or latch, in words: `7 of 10 taken`, `3 of 4 steps left`. */
export function synchronizerText({ type, count, total, taken }: SynchronizerInspection): string {
  if (type === 'counter') return `a number: ${count}`;
  if (type === 'count-down-latch')
    return total === undefined ? `${count} steps left` : `${count} of ${total} steps left`;
  return taken === undefined ? `${count} available` : `${taken} of ${total} taken`;
}

/** The size of a result: `0 B`, `850 B`, `2.1 kB`, `1.0 MB`. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  return bytes < 999_950 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
