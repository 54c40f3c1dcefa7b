/** A command that was given to a client, with its state. The guarantees of the backend depend on this state. */
export interface SentCommand {
  /**
   * The decoded reply: strings, numbers, null and lists of them. Rejects with the error reply of the server, or
   * with the reason why there is no reply.
   */
  readonly reply: Promise<unknown>;
  /** The connection on which it was written last. `undefined`: it has not left this process. */
  readonly socket: object | undefined;
  /** It was written on a second connection after the first one broke, so it may have been executed twice. */
  readonly resent: boolean;
  /** When it was written last, on the monotonic clock, in milliseconds. */
  readonly writtenAt: number;
  /**
   * How long its connection has received nothing since then, in milliseconds. `undefined` if it has received something
   * or is closed.
   */
  readonly idleSinceWrite: number | undefined;
  /** Its connection has closed since it was written. */
  readonly isLost: boolean;
  /**
   * Whether the error is the server's reply to this command, and not, for example, to the handshake of a connection.
   */
  isAnswer(error: unknown): boolean;
  /** Called when the reply is no longer needed. If the command has not been written yet, it will never be executed. */
  abandon(): void;
  /** Destroys the connection on which it was written, so that it is replaced. */
  destroySocket(reason: Error): void;
}

/** The commands of one server, on one connection at a time, which is replaced when it breaks. */
export interface Link {
  /** `host:port` */
  readonly address: string;
  send(name: string, args: readonly string[]): SentCommand;
}

/** How a channel is subscribed to. */
export type ChannelKind = 'channel' | 'pattern' | 'sharded';

/** What a {@link SubscriberConnection} reports. */
export interface SubscriberEvents {
  /** It is connected, and may be used. */
  ready(): void;
  /** It can no longer be used: it broke, could not be opened, or the server ended a subscription. */
  ended(): void;
  /** An error, for logs. */
  failed(error: unknown): void;
  /** @param subscribed the channel or pattern that was subscribed to */
  message(subscribed: string, channel: string, text: string): void;
}

/**
 * One connection for subscriptions. It never reconnects, because it would not be certain which subscriptions are
 * active.
 */
export interface SubscriberConnection {
  /** `host:port` of its server, as far as that is known. */
  readonly address: string;
  /** Connects in the background. Nothing is reported before this call has returned. */
  open(events: SubscriberEvents): void;
  /** Settles when the server has confirmed all of them. */
  subscribe(kind: ChannelKind, channels: readonly string[]): Promise<unknown>;
  /** Settles when the server has confirmed it. */
  unsubscribe(kind: ChannelKind, channels: readonly string[]): Promise<unknown>;
  /** Left out: it cannot go silent. */
  ping?(): Promise<unknown>;
  close(): void;
}
