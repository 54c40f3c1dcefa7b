// The data of the page. Times are in milliseconds since 1970 by the clock of this process, so that they change only
// when something happens.

/** A lock that is held. */
export interface BoardLock {
  readonly name: string;
  readonly type: string;
  /** The first few of its owners. */
  readonly owners: readonly BoardOwner[];
  readonly ownerCount: number;
  /** When the last of its leases ends unless renewed. Null: it has no end. */
  readonly leaseEnds: number | null;
  readonly token: number | null;
  readonly waiting: number;
  /** When its first waiter began to wait, if clients have records. */
  readonly waitsSince: number | null;
  /** The first few of the processes that wait, the next one first. */
  readonly waiters: readonly BoardWaiter[];
  /** How many processes wait. */
  readonly waiterCount: number;
}

export interface BoardOwner extends Whereabouts {
  readonly owner: string;
  readonly redisson: boolean;
  /** No process holds the lock. The place is that of the process that has detached it. */
  readonly detached: boolean;
  readonly since: number;
  /** The time of the acquisition is not in the record. `since` is when the dashboard first saw the lock. */
  readonly atLeast: boolean;
  readonly leaseEnds: number | null;
}

export interface BoardWaiter extends Whereabouts {
  /** Null if the backend keeps no order of these waiters. */
  readonly position: number | null;
  readonly redisson: boolean;
  /** How many callers of the process wait. Null: not known yet. */
  readonly waiters: number | null;
  /** Null: not known yet. */
  readonly since: number | null;
}

/** Where a caller runs. Unknown strings are empty, and an unknown pid is 0. */
export interface Whereabouts {
  readonly application: string;
  readonly host: string;
  readonly pid: number;
  /** `Class.method`, or the group. */
  readonly method: string;
}

export interface BoardClient extends Whereabouts {
  readonly clientId: string;
  readonly version: string;
  /** Whether it is the process that serves the page. */
  readonly mine: boolean;
  readonly since: number;
  readonly held: number;
  readonly waiting: number;
  readonly waitsSince: number | null;
  /** Since when its event loop has been blocked. Null: it is not, as far as is known. */
  readonly blockedSince: number | null;
}

/** A semaphore or latch. */
export interface BoardSynchronizer {
  readonly name: string;
  readonly type: string;
  /** The state in words. */
  readonly state: string;
  /** The first few of the permits that are held. */
  readonly permits: readonly BoardPermit[];
  readonly permitCount: number;
  /** Callers of the process that serves the page. */
  readonly waiting: number;
}

/** The stored result of a single flight. */
export interface BoardResult {
  readonly name: string;
  /** In words. */
  readonly size: string;
  readonly keptUntil: number | null;
}

export interface BoardPermit extends Whereabouts {
  readonly id: string;
  readonly leaseEnds: number | null;
}

export interface BoardEvent {
  readonly at: number;
  readonly kind: 'lost' | 'deadlock' | 'released';
  readonly name: string;
  readonly method: string;
  readonly text: string;
}

/** The place where the shown locks are kept. */
export interface BoardPlace {
  /** The backend: `redis 127.0.0.1:6379/0`. */
  readonly backend: string;
  readonly keyPrefix: string;
  /** The option `environment`, or `''`. */
  readonly environment: string;
}

/** All locks and clients at one moment. */
export interface Snapshot {
  readonly at: number;
  /** How long the snapshot took. */
  readonly took: number;
  readonly locks: readonly BoardLock[];
  readonly synchronizers: readonly BoardSynchronizer[];
  readonly results: readonly BoardResult[];
  readonly clients: readonly BoardClient[];
  /** There are more locks than were read. */
  readonly incomplete: boolean;
  /** Why the snapshot failed. It then shows the data from the moment `since`. */
  readonly outage: { readonly message: string; readonly since: number } | null;
}
