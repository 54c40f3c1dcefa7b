/**
 * Why a listener is called. `message`: the lock was released; for fair locks and in a line, `owner` is the waiter to
 * which the message is addressed. `resync`: messages may have been lost.
 *
 * In a line, `lock` is `granted` if the lock was granted to this owner, and `free` if it was released and is left at
 * first to those who wait outside the line. Otherwise something else has changed for the first place.
 *
 * @publicApi
 */
export type Wake =
  | { readonly kind: 'message'; readonly owner?: string; readonly lock?: 'granted' | 'free' }
  | { readonly kind: 'resync' };

/** @publicApi */
export interface Subscription {
  /** Settles when the subscription is active. It stays pending during an outage, and never rejects. */
  readonly ready: Promise<void>;

  /** Ends the subscription. Its listener is not called again. */
  close(): void;
}
