/**
 * A grant to a place in line, as a message describes it. The lock is held for its owner for `after` + `CLAIM`
 * milliseconds, or for longer, from the moment on at which the request was sent that had this nonce.
 *
 * @publicApi
 */
export interface Grant {
  /** The `nonce` of a request that made or kept the place. Others may send messages, but do not know it. */
  readonly nonce: string;
  /** As in `Acquired`. */
  readonly token: number;
  readonly reserved: number;
  /** How many milliseconds after that request was executed the lock was granted, by the backend's clock. */
  readonly after: number;
}

/**
 * Why a listener is called. `message`: the lock was released; for fair locks and in a line, `owner` is the waiter to
 * which the message is addressed. `resync`: messages may have been lost.
 *
 * In a line, `lock` is `granted` if the lock was granted to this owner, and `free` if it was released and is left at
 * first to those who wait outside the line. Otherwise something else has changed for the first place. A message with a
 * `grant` says enough to begin before the backend has confirmed it: see `LineBackend.accept`.
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
