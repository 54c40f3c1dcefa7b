import type { Moment } from './runtime.js';

/**
 * A grant to a place in line, as a message describes it: the lock is held for this owner for `CLAIM` milliseconds
 * from `begun` on.
 *
 * @publicApi
 */
export interface Grant {
  /** The `nonce` of the request that made the place. Anybody may send messages, but nobody else knows it. */
  readonly nonce: string;
  /** As in `Acquired`. */
  readonly token: number;
  readonly reserved: number;
  /** A moment on this process's clocks that is certainly not after the one at which the lock was granted. */
  readonly begun: Moment;
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
