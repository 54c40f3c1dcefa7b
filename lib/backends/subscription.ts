/**
 * Why a subscriber is called. `message`: the lock was released; `owner` is the waiter that the message is meant for
 * (fair locks). `resync`: messages may have been lost.
 *
 * @publicApi
 */
export type Wake = { readonly kind: 'message'; readonly owner?: string } | { readonly kind: 'resync' };

/** @publicApi */
export interface Subscription {
  /** Settles when messages arrive from now on. It stays pending through an outage, and never rejects. */
  readonly ready: Promise<void>;

  /** Ends the subscription: its listener is not called again. */
  close(): void;
}
