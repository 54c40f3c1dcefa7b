import type { LockState } from '../backends/lock-backend.js';
import type { HolderClient } from '../engine/clients/holder-client.js';

/** What `LockService.inspect` saw. @publicApi */
export interface LockInspection {
  readonly locked: boolean;
  readonly type: LockState['mode'];
  readonly owners: readonly InspectedOwner[];
  /**
   * How many callers wait for it: those of this process; those of other processes as they have told about themselves in the last ten
   * seconds; for a fair lock, all of them exactly.
   */
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
  /**
   * Who that is. Undefined: the client has no record, because its process has ended, has held nothing for a second yet, uses a quorum, or is
   * Redisson's.
   */
  readonly client?: HolderClient;
  /** It has no record, and an id as clients of Redisson have it. */
  readonly redisson?: true;
}

/** Whom `LockService.forceRelease` means. @publicApi */
export interface ForceReleaseOptions {
  /** The lock is taken from these owners alone, as `inspect` or `list` have shown them. Default: from all that hold it. */
  readonly owners?: readonly string[] | undefined;
  /**
   * With `owners`: the `fencingToken` that was shown with them. The owner of a Java process is a thread, and may hold the lock once more by
   * now: where the lock has had another token since, nothing is released. It is compared for `fenced` locks.
   */
  readonly fencingToken?: number | undefined;
}

/** Which locks `LockService.list` lists. @publicApi */
export interface ListOptions {
  /** A pattern for the names, as in Redis: `*`, `?`, `[abc]`, `\` before a character that is to be taken verbatim. Default: all. */
  readonly match?: string;
  /** Where to go on: the `cursor` of the page before. Default: the first page. */
  readonly cursor?: string | undefined;
  /** About how many locks a page has, from 1 to 10,000. Default 100. */
  readonly count?: number;
}

/** One page of `LockService.list`. @publicApi */
export interface LockList {
  readonly locks: readonly ListedLock[];
  /** For the next page; undefined: this was the last one. */
  readonly cursor: string | undefined;
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
