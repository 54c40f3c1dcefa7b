import type { BackendError } from './backend-error.js';
import type { AcquireReply, AcquireRequest, Busy, LockType } from './lock-requests.js';

/**
 * The ability of a backend to wait for a lock in its own queue, instead of the engine's listening for releases. The
 * engine asks for one waiter of each lock and process at a time.
 *
 * @publicApi
 */
export interface BlockingBackend {
  /** Why this backend cannot give locks of this type, as the end of a sentence; `undefined`: it can. */
  refusal(type: LockType): string | undefined;

  /**
   * As `LockBackend.acquire`, but waits until the lock is held, or until {@link stop}, which makes it answer that the
   * lock is busy. What it answers carries {@link Acquired.confirmed}.
   *
   * @param onWait called when it starts to wait for a holder (with what is known of it), and again and again while it
   * waits for something
   *   else, such as a connection (with a reason)
   * @throws BackendError
   */
  acquire(request: AcquireRequest, onWait: (reason: Busy | BackendError) => void): Promise<AcquireReply>;

  /** Ends the wait of this request. Where the lock was acquired at the same time, it is given back. */
  stop(request: AcquireRequest): void;
}
