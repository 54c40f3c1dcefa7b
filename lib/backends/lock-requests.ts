import type { Moment } from './runtime.js';

/**
 * Which kind of lock:
 *
 * - `'reentrant'` (default): one holder at a time. Processes wait in line, in the order in which they asked. A process
 *   may pass the lock among its own callers for 20 ms before the next one gets its turn.
 * - `'fair'`: one holder at a time, and every single caller of all processes is served in the order of arrival. Each
 *   change of holder costs a round trip.
 * - `'read'`: any number of readers hold it at a time, and no writer.
 * - `'write'`: one writer holds it, and no reader. A reader that asks for it gets LockUpgradeError.
 * - `'fenced'`: as `'reentrant'`, with fencing tokens from the counter of Redisson's `RFencedLock`. The leases of all
 *   types have a fencing token.
 *
 * Choose one type for a name; `'read'` and `'write'` belong together. See docs/choosing-a-lock.md.
 *
 * @publicApi
 */
export type LockType = 'reentrant' | 'fair' | 'read' | 'write' | 'fenced';

/**
 * The type of a held lock: a {@link LockType}, the lock of a `singleFlight`, or a lock that several may hold
 * (`LockOptions.permits`).
 *
 * @publicApi
 */
export type HeldType = LockType | 'flight' | 'permits';

/** Read and write locks share one lock record; any other type under the same name counts as busy, and vice versa. */
export function isReadWrite(type: HeldType): type is 'read' | 'write' {
  return type === 'read' || type === 'write';
}

/**
 * The lock types that `LockBackend.transfer` supports. Readers share a lock for as long as they want, and a fair lock
 * goes to the head of its queue, which may be in another process. A flight ends with its result.
 *
 * @publicApi
 */
export type TransferableType = Exclude<HeldType, 'fair' | 'read' | 'flight'>;

export function isTransferable(type: HeldType): type is TransferableType {
  return type !== 'fair' && type !== 'read' && type !== 'flight';
}

/** The lock types that can be detached and adopted by another process: see `Lease.detach`. @publicApi */
export type DetachableType = Exclude<TransferableType, 'permits'>;

export function isDetachable(type: HeldType): type is DetachableType {
  return isTransferable(type) && type !== 'permits';
}

/**
 * One owner of one lock. `key` is the whole key, prefix included; `owner` is `<clientId>:<n>` and is used for one type
 * only (read and write count as one).
 *
 * @publicApi
 */
export interface OwnerRef {
  readonly key: string;
  readonly type: HeldType;
  readonly owner: string;
}

/** A fair waiter, or a place in line, with its next {@link AcquireRequest.nonce}. @publicApi */
export interface WaiterRef extends OwnerRef {
  readonly nonce?: string | undefined;
}

/** @publicApi */
export interface AcquireRequest extends OwnerRef {
  /** Milliseconds until the backend frees the lock if nobody renews it. */
  readonly leaseTime: number;
  /** How many fencing tokens to reserve for hand-offs, in addition to the token of this acquisition. */
  readonly reserve: number;
  /**
   * When the lock is busy, the backend registers this owner as a waiter for this many milliseconds: in the queue of a
   * fair lock, or in the line of another lock (see {@link LineBackend}). With 0, it is not registered. A backend without
   * lines may register only writers, so that readers let them go first.
   */
  readonly waiterTimeout: number;
  /**
   * `read` and `write` only: acquire the lock even if others go first by their places in the line. An engine sets it for
   * the readers that waited right behind one whose turn has come; a quorum sets it to restore a lease on a node that has
   * lost the lease, and for writers, because the lines of single nodes have no common order. Default: false.
   */
  readonly pastLine?: boolean;
  /** Makes grants to the place in line certain: see `Grant.nonce`. Each request has another one: a UUID. */
  readonly nonce?: string | undefined;
  /** With which lease, in milliseconds, a place in line is granted the lock. */
  readonly grantLease?: number;
  /** For the type `permits`, and only for it: the owner may hold the lock if fewer than this many owners do. */
  readonly permits?: number | undefined;
  /** For a caller that takes the place of the one before it: see {@link LineBackend}. */
  readonly newest?: NewestCall | undefined;
}

/**
 * A call that takes the place of another one, and whose place may be taken: see `LockOptions.newest`.
 *
 * @publicApi
 */
export interface NewestCall {
  /** How many calls it has superseded: in a request, those that the backend has not counted. */
  readonly superseded: number;
  /** Its order among all such calls of the lock, which the backend gives to its first request. */
  readonly order: number | undefined;
}

interface Answered {
  /** What the backend knows of a {@link NewestCall}. */
  readonly newest?: NewestCall;
  /**
   * Set when the request was sent twice because a connection broke. Until this time on the backend's clock, the other
   * copy may still be executed: it may acquire the lock or register the waiter once more. Undefined: no other copy is
   * under way.
   */
  readonly validUntil?: number;
}

/** @publicApi */
export interface Acquired extends Answered {
  readonly acquired: true;
  /** The fencing token of this acquisition. It grows with each acquisition of the lock. */
  readonly token: number;
  /** How many tokens after `token` are reserved for this acquisition: at most the `reserve` that was requested. */
  readonly reserved: number;
  /**
   * The moment, on this process's clocks, before the last command that set the lease was sent. Default: when the
   * acquisition was requested.
   */
  readonly confirmed?: Moment;
}

/** @publicApi */
export interface Busy extends Answered {
  readonly acquired: false;
  /**
   * The time in milliseconds after which another attempt makes sense even without a message; −1 if the holder's lease
   * has no end.
   */
  readonly remaining: number;
  /** An owner that holds the lock, or is ahead of this one in a fair queue. */
  readonly holder: string | undefined;
  /**
   * Whether the backend (a quorum without a majority) has already released parts of the acquisition. Another attempt
   * then needs a new owner.
   */
  readonly spent?: boolean;
  /**
   * Set when the lock is held as another kind than this request's, or by a client whose release does not serve the
   * line. Callers that wait would not hear of its release, so listen for this type as well. (`fair` always listens for
   * `'reentrant'` as well, because replies do not distinguish the two.)
   */
  readonly heldAs?: 'reentrant' | 'write';
  /** Whether a later call has taken the place of this {@link NewestCall}. It has no place any more. */
  readonly superseded?: boolean;
  /** Whether its place in line is kept for `KEPT_FAR_BACK` times as long as usual. */
  readonly keptLonger?: boolean;
}

/** @publicApi */
export type AcquireReply = Acquired | Busy;

/** @publicApi */
export type AcquireAllReply = Answered &
  (
    | /** The tokens, in the order of the requests. */ { readonly acquired: true; readonly tokens: readonly number[] }
    /** `index` of the first busy request. Nothing was acquired. */
    | {
        readonly acquired: false;
        readonly index: number;
        readonly remaining: number;
        readonly holder: string | undefined;
      }
  );

/** @publicApi */
export interface ReleaseRequest extends OwnerRef {
  /** How many milliseconds the lease may last from now on. A backend that repeats the release itself does so for as long. */
  readonly leaseTime?: number;
  /**
   * Called by a backend that keeps the release back, to send it together with others. Until {@link leavesQueue} is
   * called, the release may be withdrawn.
   */
  queued?(): void;
  /**
   * Called when a release that was kept back is about to be sent, or is given up.
   *
   * @returns false if it was withdrawn. It is then not sent, and its reply means nothing
   */
  leavesQueue?(): boolean;
}

/** @publicApi */
export interface ReleaseReply {
  /** Whether this owner held the lock. */
  readonly released: boolean;
  /** How many other processes received the message: subscribers of the channel, not counting this process. */
  readonly listeners: number;
  /**
   * Whether a message about the release was published. This process also receives it if it listens.
   */
  readonly published: boolean;
  /** The connection broke while the release was under way, so the release may have been executed twice. */
  readonly resent: boolean;
  /**
   * The time on the backend's clock at which it found that this owner does not hold the lock. See {@link
   * BackendError.validUntil}.
   */
  readonly at?: number;
}

/** @publicApi */
export interface TransferRequest {
  readonly key: string;
  readonly type: TransferableType;
  readonly from: string;
  readonly to: string;
  readonly leaseTime: number;
  readonly reserve: number;
}

/** Takes over a detached lock: see {@link LockBackend.adopt}. @publicApi */
export interface AdoptRequest {
  readonly key: string;
  readonly type: DetachableType;
  /** The client that detached the lock. */
  readonly clientId: string;
  /** The secret of the ticket. The lock's owner is `<clientId>:t-<SHA-1 of the secret>`. */
  readonly secret: string;
  /** The next owner. */
  readonly to: string;
  readonly leaseTime: number;
}

/** @publicApi */
export type AdoptReply =
  | Acquired
  /**
   * Neither the ticket's owner nor `to` holds the lock. `holder` is the owner that holds it; undefined if the lock is
   * free.
   */
  | { readonly acquired: false; readonly holder: string | undefined };

/** @publicApi */
export interface RenewRequest extends OwnerRef {
  readonly leaseTime: number;
}

/** @publicApi */
export interface LockState {
  readonly mode: 'free' | 'exclusive' | 'read' | 'write' | 'permits';
  /** Each owner with the remaining milliseconds of its lease (−1: no limit). A downgraded writer is listed once. */
  readonly owners: readonly { readonly owner: string; readonly remaining: number }[];
  /** Other owners that may hold it, because some nodes of a quorum have not answered. */
  readonly possibleOwners?: readonly string[] | undefined;
  /** Owners in the queue of a fair lock or in the line of another one, the first of them first. */
  readonly queue: readonly string[];
  /** The last token of a `fenced` lock, if any. */
  readonly token: number | undefined;
}

/**
 * The owners that a forced release may remove, as shown by {@link LockState}, with the token shown beside them.
 *
 * @publicApi
 */
export interface ExpectedHolders {
  /** The owners to remove; others keep the lock. */
  readonly owners: readonly string[];
  /**
   * {@link LockState.token} as it was shown. If the lock's token has changed, the lock was acquired again and nobody is
   * removed, because other libraries may reuse owner ids. When it is undefined, or the backend has no token for this
   * lock, only owners are compared.
   */
  readonly token?: number | undefined;
}

/** Owners of one client that no longer hold the lock, because of a forced release or another event. */
export interface Removal {
  readonly key: string;
  readonly owners: readonly string[];
  /** What happened, if the backend itself noticed it and no verification is needed. Never taken from a message. */
  readonly reason?: string;
}
