import type { BackendError } from '../../backends/backend-error.js';
import type { Subscription, Wake } from '../../backends/subscription.js';
import type { RequestId } from '../../backends/synchronizer-backend.js';

export interface GrantResult {
  /** How many of the request's waiters, counted from the first, get what they want. */
  readonly served: number;
  /** Milliseconds after which another request makes sense without a message; −1: none does. */
  readonly remaining: number;
  /** The semaphore does not exist. */
  readonly missing?: boolean;
  /** They were granted, but the answer came after their leases had ended: they are given back. */
  readonly late?: BackendError;
}

/** One request to the backend on behalf of several waiters. Sent again, it gets the same result. */
export interface PermitRequest {
  /** Whether a grant takes permits: then the result has to be known even if nobody waits for it any more. */
  readonly takesPermits: boolean;
  /** @param repeated the request was sent before and got no answer; that copy may still be under way */
  send(repeated: boolean): Promise<GrantResult>;
  /** Resolves a waiter that was served. */
  grant(index: number): void;
  /** Returns the permits of waiters that were served after they had left. */
  giveBack(indexes: readonly number[]): void;
}

/** Where the waiters of one queue get their permits from. */
export interface PermitSource<W> {
  /** The waiters that one request can be sent for, from the first on. */
  selectBatch(waiters: Iterable<W>): readonly W[];
  /** @param initial with how many permits to create a semaphore that does not exist */
  request(waiters: readonly W[], id: RequestId, initial: number | undefined): PermitRequest;
  /** Calls back when another request makes sense. */
  subscribe(listener: (wake: Wake) => void): Subscription;
}

/** The first waiters, at most `limit`, up to the first one that does not fit in with them. */
export function takeWhile<W>(waiters: Iterable<W>, limit: number, fits: (first: W, other: W) => boolean): readonly W[] {
  const batch: W[] = [];
  for (const waiter of waiters) {
    if (batch.length === limit || (batch.length > 0 && !fits(batch[0], waiter))) break;
    batch.push(waiter);
  }
  return batch;
}
