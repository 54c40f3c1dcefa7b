import type { Moment } from './runtime.js';

/**
 * How a lock is shared. See `LockOptions.type`.
 *
 * @publicApi
 */
export type LockType = 'reentrant' | 'fair' | 'read' | 'write' | 'fenced';

/**
 * The two sides of a read/write lock share one lock record; every other type under the same name counts as busy, and
 * vice versa.
 */
export function isReadWrite(type: LockType): type is 'read' | 'write' {
  return type === 'read' || type === 'write';
}

/**
 * The lock types that `LockBackend.transfer` is for. Readers share a lock, and a fair lock goes to the head of its
 * queue, which may be in another process.
 *
 * @publicApi
 */
export type TransferableType = Exclude<LockType, 'fair' | 'read'>;

export function isTransferable(type: LockType): type is TransferableType {
  return type !== 'fair' && type !== 'read';
}

/**
 * One owner of one lock. `key` is the whole key, prefix included; `owner` is `<clientId>:<n>` and belongs to one type
 * (read and write count as one).
 *
 * @publicApi
 */
export interface OwnerRef {
  readonly key: string;
  readonly type: LockType;
  readonly owner: string;
}

/** @publicApi */
export interface AcquireRequest extends OwnerRef {
  /** Milliseconds until the backend frees the lock if nobody renews it. */
  readonly leaseTime: number;
  /** How many fencing tokens to reserve beside the one of this acquisition, for hand-offs. 0: none. */
  readonly reserve: number;
  /**
   * When the lock is busy, the backend registers this owner as a waiter for this many milliseconds: in the queue of a
   * fair lock, or as a waiting writer. 0: it leaves no trace. Other types ignore it.
   */
  readonly waiterTimeout: number;
  /**
   * `read` only: acquire although a writer waits. A quorum sets it to restore a lease on a node that has lost it.
   * Default: false, so that readers give way to a waiting writer.
   */
  readonly pastWaitingWriters?: boolean;
}

interface Answered {
  /**
   * The request was sent twice because a connection broke, and the other copy may be executed until this time on the
   * backend's clock: it may acquire the lock, or register the waiter, once more. Undefined: no other copy is under way.
   */
  readonly validUntil?: number;
}

/** @publicApi */
export interface Acquired extends Answered {
  readonly acquired: true;
  /** The fencing token of this acquisition. It grows with each acquisition of the lock. */
  readonly token: number;
  /** How many tokens after `token` belong to this acquisition too: at most the `reserve` that was requested. */
  readonly reserved: number;
  /**
   * The moment before the last command that set the lease was sent, on this process's clocks. Default: when the
   * acquisition was requested.
   */
  readonly confirmed?: Moment;
}

/** @publicApi */
export interface Busy extends Answered {
  readonly acquired: false;
  /** Milliseconds after which another attempt makes sense without a message; −1 when the holder's lease has no end. */
  readonly remaining: number;
  /** An owner that holds the lock, or is ahead of this one in a fair queue. */
  readonly holder: string | undefined;
  /**
   * The backend has released parts of the acquisition again (a quorum without a majority): another attempt needs
   * another owner.
   */
  readonly spent?: boolean;
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
  /**
   * Publishes nothing. A quorum revokes an acquisition that was never used on single nodes; a message about that would
   * only wake contenders in vain.
   */
  readonly quietly?: boolean;
}

/** @publicApi */
export interface ReleaseReply {
  /** False: this owner did not hold the lock. */
  readonly released: boolean;
  /** How many other processes heard of this release: subscribers of the channel, less our own. */
  readonly listeners: number;
  /** A message was published, and comes back to us if we listen. False: nobody heard of the release, not even we. */
  readonly published: boolean;
  /** The connection broke while the release was under way, so that it may have been executed twice. */
  readonly resent: boolean;
  /** When this owner was found not to hold the lock, by the backend's clock. See {@link BackendError.validUntil}. */
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

/** @publicApi */
export interface RenewRequest extends OwnerRef {
  readonly leaseTime: number;
}

/** @publicApi */
export interface LockState {
  readonly mode: 'free' | 'exclusive' | 'read' | 'write';
  /**
   * Each owner with the milliseconds that its lease has left (−1: without limit). A downgraded writer is listed once.
   */
  readonly owners: readonly { readonly owner: string; readonly remaining: number }[];
  /** Owners in the queue of a fair lock, the head first; empty for other types. */
  readonly queue: readonly string[];
  /** The last token of a `fenced` lock, if there is one. */
  readonly token: number | undefined;
}

/**
 * Whom a forced release means: owners that {@link LockState} has shown, and the token that it has shown with them.
 *
 * @publicApi
 */
export interface ExpectedHolders {
  /** Only these are removed. */
  readonly owners: readonly string[];
  /**
   * {@link LockState.token} as it was shown. Where the lock's token is another one by now, the lock was acquired anew,
   * and nobody is removed: the owner ids of other libraries may repeat. Undefined, and where the backend shows no token
   * for this lock, owners alone are compared.
   */
  readonly token?: number | undefined;
}

/** What one client has lost by a forced release, or by something else: these of its owners no longer hold the lock. */
export interface Removal {
  readonly key: string;
  readonly owners: readonly string[];
  /**
   * What happened, where the backend itself has noticed it and nothing is to be verified. Never taken from a message.
   */
  readonly reason?: string;
}
