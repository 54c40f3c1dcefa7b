import type { ChannelKind } from '../links/link.js';
import type { SubscriberLink } from './subscriber-link.js';

export interface ChannelListener {
  /** A message arrived on this channel; for a pattern, on a channel that matches it. */
  message(channel: string, text: string): void;
  /** The subscription was interrupted and is active again: messages may have been lost. */
  resync(): void;
  /** The user may not listen to this channel. If it is undefined, that is reported as an error. */
  readonly refused?: ((error: Error) => void) | undefined;
}

/** A channel or pattern with its listeners, and whether its subscription is active. */
export class Topic {
  readonly listeners = new Set<ChannelListener>();
  /** The connection that it is subscribed on; undefined while there is none. */
  link: SubscriberLink | undefined;
  private readyPromise!: Promise<void>;
  private resolve!: () => void;
  private active = false;
  private interrupted = false;

  constructor(
    readonly name: string,
    readonly kind: ChannelKind,
  ) {
    this.waitForConfirmation();
  }

  /** Settles when the subscription is active. */
  get ready(): Promise<void> {
    return this.readyPromise;
  }

  /** The subscription is active. Returns true when it is active again, after an interruption. */
  confirm(): boolean {
    const wasInterrupted = this.interrupted;
    this.active = true;
    this.interrupted = false;
    this.resolve();
    return wasInterrupted;
  }

  /** The connection was lost. */
  interrupt(): void {
    this.link = undefined;
    if (!this.active) return;
    this.active = false;
    this.interrupted = true;
    this.waitForConfirmation();
  }

  private waitForConfirmation(): void {
    this.readyPromise = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }
}
