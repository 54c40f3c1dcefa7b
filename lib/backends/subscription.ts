/**
 * Why a listener is called. `message`: the lock was released; for fair locks, `owner` is the waiter to which the
 * message is addressed. `resync`: messages may have been lost.
 *
 * @publicApi
 */
export type Wake = { readonly kind: 'message'; readonly owner?: string } | { readonly kind: 'resync' };

/** @publicApi */
export interface Subscription {
  /** Settles when the subscription is active. It stays pending during an outage, and never rejects. */
  readonly ready: Promise<void>;

  /** Ends the subscription. Its listener is not called again. */
  close(): void;
}
