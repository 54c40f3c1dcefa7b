import type { SynchronizerBackend } from './synchronizer-backend.js';

/** How a lock is shared. See `LockOptions.type`. */
export type LockType = 'reentrant' | 'fair' | 'read' | 'write' | 'fenced';

/**
 * Lock types that {@link LockBackend.transfer} takes. Readers hold a lock together, and a fair lock goes to the head of its queue, which may
 * be in another process.
 */
export type TransferableType = Exclude<LockType, 'fair' | 'read'>;

export function isTransferable(type: LockType): type is TransferableType {
  return type !== 'fair' && type !== 'read';
}

/** One owner of one lock. `key` is the whole key, prefix included; `owner` is `<clientId>:<n>`, of one type (read and write count as one). */
export interface OwnerRef {
  readonly key: string;
  readonly type: LockType;
  readonly owner: string;
}

export interface AcquireRequest extends OwnerRef {
  /** Milliseconds until the backend frees the lock if nobody renews it. */
  readonly leaseTime: number;
  /** How many fencing tokens to reserve beside the one of this acquisition, for hand-offs. 0 = none. */
  readonly reserve: number;
  /**
   * When the lock is busy, keep a place for this owner during so many milliseconds: an entry in the queue of a fair
   * lock, an announcement of a waiting writer. 0 = leave no trace. Other types ignore it.
   */
  readonly fairWaitTimeout: number;
  /** `read` alone: stand back while a writer has a place. */
  readonly preferWriters: boolean;
}

/** What is known of a request that was answered. */
interface Answered {
  /**
   * It was sent twice, because a connection broke, and the other copy may be executed until this time on the backend's clock: it may
   * take the lock, or a place, once more. Undefined: this was all.
   */
  readonly validUntil?: number;
}

export interface Acquired extends Answered {
  readonly acquired: true;
  /** Fencing token of this acquisition; it grows with each acquisition of the lock. */
  readonly token: number;
  /** How many tokens after `token` belong to this acquisition too: at most the `reserve` that was asked for. */
  readonly reserved: number;
}

export interface Busy extends Answered {
  readonly acquired: false;
  /** Milliseconds until it makes sense to look again without having been woken; −1 when nothing limits the holder. */
  readonly remaining: number;
  /** An owner that holds the lock, or stands before this one in a fair queue. */
  readonly holder: string | undefined;
}

export type AcquireReply = Acquired | Busy;

export type AcquireAllReply = Answered &
  (
    | /** The tokens, in the order of the requests. */ { readonly acquired: true; readonly tokens: readonly number[] }
    /** `index` of the first busy request. Nothing was taken. */
    | {
        readonly acquired: false;
        readonly index: number;
        readonly remaining: number;
        readonly holder: string | undefined;
      }
  );

export interface ReleaseRequest extends OwnerRef {
  /**
   * Tells nobody that the lock is free: for taking back an acquisition that was never used, on one node of a quorum, so that
   * contenders don't wake each other up with it. On Redis: no PUBLISH.
   */
  readonly quietly?: boolean;
}

export interface ReleaseReply {
  /** False: this owner was not there. */
  readonly released: boolean;
  /** How many others listened for this release: subscribers of the channel, this process's own taken off. */
  readonly listeners: number;
  /** Its message went out, and comes back to us if we listen. False: nobody heard it, not even we. */
  readonly published: boolean;
  /** The connection broke while the release was under way, so that it may have been executed twice. */
  readonly resent: boolean;
  /** Where this owner was not there: when that was, by the backend's clock. See {@link BackendError.validUntil}. */
  readonly at?: number;
}

export interface TransferRequest {
  readonly key: string;
  readonly type: TransferableType;
  readonly from: string;
  readonly to: string;
  readonly leaseTime: number;
  readonly reserve: number;
}

export interface RenewRequest extends OwnerRef {
  readonly leaseTime: number;
}

export interface LockState {
  readonly mode: 'free' | 'exclusive' | 'read' | 'write';
  /** Each owner with the milliseconds that its part has left (−1: without limit). A downgraded writer is in it once. */
  readonly owners: readonly { readonly owner: string; readonly remaining: number }[];
  /** Owners in the queue of a fair lock, the head first; empty for other types. */
  readonly queue: readonly string[];
  /** The last token of a `fenced` lock, where there is one. */
  readonly token: number | undefined;
}

/** `message`: the lock was released. `owner`: the one it was meant for (fair locks). `resync`: messages may have been lost. */
export type Wake = { readonly kind: 'message'; readonly owner?: string } | { readonly kind: 'resync' };

/** What a forced release took from a client: these of its owners hold this lock no more. */
export interface Removal {
  readonly key: string;
  readonly owners: readonly string[];
}

export interface Subscription {
  /** Settles when messages arrive from now on; stays pending through an outage, never rejects. */
  readonly ready: Promise<void>;
  close(): void;
}

/** Milliseconds: those who were woken by one message ask at about the same time. */
export const TICKET_LIFETIME = 1_000;

/**
 * What a lock engine asks of the place where locks are kept. Every implementation passes the suite in test/contract.
 *
 * - All methods may be called at any time, concurrently. Promises reject with {@link BackendError} alone.
 * - An acquisition is idempotent: an owner that is there already is renewed to `leaseTime` and gets a (new) token.
 * - Times are measured by the backend's own clock.
 * - A call that gets no answer within the backend's command time-out rejects with `outcome: 'unknown'`.
 * - What takes something (an acquisition, a pass, a place, permits) is not executed any more once that time-out is over, however long
 *   it was under way: nobody would know of it. See {@link BackendError.validUntil}.
 */
export interface LockBackend {
  /** For logs: `redis 127.0.0.1:6379/0`. Never holds a secret. */
  readonly description: string;

  /** Why it cannot be asked now: the last error of its connection since it was last ready. Absent: not known. Never holds a secret. */
  readonly connectionError?: Error | undefined;

  /** Semaphores and latches; undefined: this backend keeps none. */
  readonly synchronizers: SynchronizerBackend | undefined;

  acquire(request: AcquireRequest): Promise<AcquireReply>;

  /** True when {@link acquireAll} can take all these keys in one step. */
  canAcquireTogether(keys: readonly string[]): boolean;

  /**
   * Takes all or none, in one step. Only of `reentrant`, `fenced`, `read` and `write` requests of one leaseTime, for keys that
   * {@link canAcquireTogether}. It reserves no tokens, and keeps no place for a writer that has to wait: `reserve` and `fairWaitTimeout` are
   * ignored.
   */
  acquireAll(requests: readonly AcquireRequest[]): Promise<AcquireAllReply>;

  /** Frees what this owner holds and wakes who waits, unless it is to be done quietly. */
  release(request: ReleaseRequest): Promise<ReleaseReply>;

  /** Replaces an owner by another one in one step, with a fresh lease; `undefined` when `from` was not there. */
  transfer(request: TransferRequest): Promise<Acquired | undefined>;

  /** Sets the lease of this owner to `leaseTime` from now on. False: this owner is not there. */
  renew(request: RenewRequest): Promise<boolean>;

  /**
   * Later acquisitions of this lock get tokens above `token`; nothing happens when they would anyway. It is how the nodes of a
   * quorum agree on a token: the clock that tokens of this type come from (for `fenced`, the lock's own counter) is set forth.
   */
  raiseToken(key: string, type: LockType, token: number): Promise<void>;

  /** Keeps the places of waiting owners (see {@link AcquireRequest.fairWaitTimeout}) for another `fairWaitTimeout` ms. False: that place was gone. */
  refreshWaiters(places: readonly OwnerRef[], fairWaitTimeout: number): Promise<readonly boolean[]>;

  /** Gives up a place, and wakes who is next if this one was woken. Nothing happens when there is none. */
  removeWaiter(place: OwnerRef): Promise<void>;

  /**
   * Frees the lock whoever holds it, of any type, wakes who waits, and tells the clients of the removed owners. Gives each removed owner
   * once; none: it was free.
   */
  forceRelease(key: string): Promise<readonly string[]>;

  inspect(key: string): Promise<LockState>;

  /**
   * Numbers those who were woken by one message and found the lock taken by the same `holder` all the same: 1, 2, … in the order in which
   * they ask, so that not all of them try again at the next message. Forgotten after {@link TICKET_LIFETIME}, and with another holder.
   * Absent: this backend does not number them, and all try again.
   */
  takeTicket?(key: string, holder: string): Promise<number>;

  /**
   * Listens for releases of this lock. One connection serves all subscriptions; those of one channel share one. For a fair
   * lock, `clientId` names the owners (`<clientId>:*`) that are listened for.
   */
  subscribe(key: string, type: LockType, clientId: string, listener: (wake: Wake) => void): Subscription;

  /**
   * Listens for forced releases that concern owners of this client, whoever asked for them. Anybody may have sent such a message: look before
   * you believe it. Absent: nobody is told.
   */
  listenToClient?(clientId: string, listener: (removal: Removal) => void): Subscription;

  /** Closes what this backend opened itself; outstanding calls reject. */
  close(): Promise<void>;
}

/**
 * Why a call to a backend failed.
 *
 * - `kind` `unavailable`: no answer, or one that another try may change (LOADING, READONLY, OOM, CLUSTERDOWN, …).
 *   `denied`: the server refuses this user or command. `key`: something that is no lock of this kind stands under the key.
 *   `closed`: the client that it is asked by has ended, and will never answer again.
 * - `outcome` `refused`: it was certainly not executed. `unknown`: it may have been, or may still be.
 * - `validUntil`: of an unknown outcome, the time on the backend's clock, in ms, after which it is certainly not executed any more. A
 *   release that finds nothing ({@link ReleaseReply.at}) before that time proves nothing. Undefined: it is not under way any more.
 */
export class BackendError extends Error {
  override readonly name = 'BackendError';
  readonly validUntil: number | undefined;

  constructor(
    message: string,
    readonly kind: 'unavailable' | 'denied' | 'key' | 'closed',
    readonly outcome: 'refused' | 'unknown',
    options?: ErrorOptions & { readonly validUntil?: number },
  ) {
    super(message, options);
    this.validUntil = outcome === 'unknown' ? options?.validUntil : undefined;
  }
}

/** What is known of the place that was asked. */
type Asked = Pick<LockBackend, 'description' | 'connectionError'>;

/**
 * A call had no answer in time; the cause is what its connection failed with, where that is known.
 *
 * @param time milliseconds; `Infinity`: nobody gave up yet
 */
export function noAnswer(
  asked: Asked,
  time: number,
  outcome: BackendError['outcome'] = 'unknown',
  validUntil?: number,
): BackendError {
  const within = Number.isFinite(time) ? `within ${time} ms` : 'yet';
  const message = `${asked.description}: no answer ${within}`;
  return withReason(asked, new BackendError(message, 'unavailable', outcome, { validUntil }));
}

/** The same failure with what its connection failed with, where it does not say that itself. */
export function withReason({ connectionError }: Asked, failure: BackendError): BackendError {
  if (connectionError === undefined || failure.cause !== undefined || failure.kind !== 'unavailable') return failure;
  const { message, kind, outcome, validUntil } = failure;
  return new BackendError(`${message} (${connectionError.message})`, kind, outcome, {
    cause: connectionError,
    validUntil,
  });
}
