import type { BackendError } from './backend-error.js';
import type { AcquireReply, AcquireRequest, Busy, HeldType } from './lock-requests.js';

/**
 * Lets waiters queue in the backend instead of listening for releases. The engine asks for at most one waiter per lock
 * and process at a time.
 *
 * @publicApi
 */
export interface BlockingBackend {
  /** Why this backend does not support locks of this type, as the end of a sentence; `undefined` if it does. */
  refusal(type: HeldType): string | undefined;

  /**
   * As `LockBackend.acquire`, but waits until the lock is held or {@link stop} is called, after which the reply says
   * that the lock is busy. A granted reply carries {@link Acquired.confirmed}.
   *
   * @param onWait called with the holder's reply when the wait begins, and repeatedly, with the error, while the
   *   backend waits for something else, such as a connection
   * @throws BackendError
   */
  acquire(request: AcquireRequest, onWait: (reason: Busy | BackendError) => void): Promise<AcquireReply>;

  /** Ends the wait of this request. If the lock is acquired at the same moment, it is released again. */
  stop(request: AcquireRequest): void;
}
