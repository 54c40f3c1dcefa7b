/**
 * A grant to a place in line, as a message describes it: the lock is held for its owner for `lease` milliseconds, or for
 * longer. That began `after` ms after the request with this nonce was executed.
 *
 * @publicApi
 */
export interface Grant {
  /** The `nonce` of a request that made or kept the place. Others may send messages, but do not know it. */
  readonly nonce: string;
  /** As in `Acquired`. */
  readonly token: number;
  readonly reserved: number;
  /** By the backend's clock. 0 if another server has executed the request. */
  readonly after: number;
  readonly lease: number;
}

/**
 * Why a listener is called. `message`: the lock was released; for fair locks and in a line, `owner` is the waiter to
 * which the message is addressed. `resync`: messages may have been lost.
 *
 * In a line, `lock` is `granted` if the lock was granted to this owner, and `free` if it was released and is left at
 * first to those who wait outside the line. Otherwise something else has changed for the first place. A message with a
 * `grant` says enough to begin without asking.
 *
 * @publicApi
 */
export type Wake =
  | {
      readonly kind: 'message';
      readonly owner?: string;
      readonly lock?: 'granted' | 'free';
      readonly grant?: Grant;
    }
  | { readonly kind: 'resync' };

/** @publicApi */
export interface Subscription {
  /** Settles when the subscription is active. It stays pending during an outage, and never rejects. */
  readonly ready: Promise<void>;

  /** Ends the subscription. Its listener is not called again. */
  close(): void;
}
