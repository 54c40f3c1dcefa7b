import type { ConnectionContext } from '../connection-context.js';
import type { ChannelKind, SubscriberConnection, SubscriberEvents } from '../link.js';
import {
  type ClientFactory,
  connectWithin,
  destroy,
  type Endpoint,
  isSame,
  type NodeRedisClient,
} from './node-redis-client.js';
import { asReplyError } from './sent-command.js';

/** The methods of node-redis for each kind. */
const COMMANDS = {
  channel: { subscribe: 'subscribe', unsubscribe: 'unsubscribe' },
  pattern: { subscribe: 'pSubscribe', unsubscribe: 'pUnsubscribe' },
  sharded: { subscribe: 'sSubscribe', unsubscribe: 'sUnsubscribe' },
} as const;

/** A node-redis client for subscriptions. It does not reconnect, so its own lists of subscriptions are not used. */
export class NodeRedisSubscriber implements SubscriberConnection {
  private events: SubscriberEvents | undefined;
  private closed = false;
  /** The last unconfirmed request for each kind and channel. */
  private readonly underWay = new Map<string, Promise<unknown>>();
  private client: NodeRedisClient | undefined;
  private endpoint: Endpoint | undefined;

  /**
   * @param locate returns the current address of the server
   * @param onClose called when it can no longer be used
   */
  constructor(
    readonly address: string,
    private readonly locate: () => Promise<Endpoint>,
    private readonly createClient: ClientFactory,
    private readonly context: ConnectionContext,
    private readonly onClose?: () => void,
  ) {}

  open(events: SubscriberEvents): void {
    this.events = events;
    this.locate()
      .then(async (endpoint) => {
        if (this.closed) return;
        const client = this.createClient(endpoint);
        this.client = client;
        this.endpoint = endpoint;
        client.on('error', (error: unknown) => this.failed(error));
        client.on('end', () => this.ended());
        client.on('sharded-channel-moved', () => this.ended());
        await connectWithin(client, this.context);
        if (this.closed) destroy(client);
        else events.ready();
      })
      .catch((error: unknown) => this.failed(error));
  }

  subscribe(kind: ChannelKind, channels: readonly string[]): Promise<unknown> {
    return this.inTurn(kind, channels, async (client) => this.subscription(client, kind, channels, this.events));
  }

  private subscription(
    client: NodeRedisClient,
    kind: ChannelKind,
    channels: readonly string[],
    events: SubscriberEvents | undefined,
  ): Promise<unknown> {
    // Patterns are reported by the channel that matched: each one is subscribed to with its own listener.
    if (kind === 'pattern') {
      return Promise.all(
        channels.map((pattern) =>
          client.pSubscribe([pattern], (text, channel) => events?.message(pattern, channel, text)),
        ),
      );
    }
    return client[COMMANDS[kind].subscribe](channels, (text, channel) => events?.message(channel, channel, text));
  }

  unsubscribe(kind: ChannelKind, channels: readonly string[]): Promise<unknown> {
    return this.inTurn(kind, channels, async (client) => client[COMMANDS[kind].unsubscribe](channels));
  }

  async ping(): Promise<unknown> {
    return this.client?.ping();
  }

  /** Its server was replaced by the one at this address. */
  leaveUnlessAt(endpoint: Endpoint): void {
    if (this.client === undefined || (this.endpoint && isSame(this.endpoint, endpoint))) return;
    this.ended();
  }

  close(): void {
    this.closed = true;
    this.events = undefined;
    this.onClose?.();
    if (this.client !== undefined) destroy(this.client);
  }

  /**
   * Runs one operation per channel at a time. While node-redis is unsubscribing from a channel, it would treat a new
   * subscription as already active and send nothing.
   */
  private async inTurn(
    kind: ChannelKind,
    channels: readonly string[],
    work: (client: NodeRedisClient) => Promise<unknown>,
  ): Promise<unknown> {
    const names = channels.map((channel) => `${kind} ${channel}`);
    const before = names.flatMap((name) => this.underWay.get(name) ?? []);
    const turn = before.length === 0 ? this.run(work) : Promise.allSettled(before).then(() => this.run(work));
    for (const name of names) this.underWay.set(name, turn);
    try {
      return await turn;
    } finally {
      for (const name of names) if (this.underWay.get(name) === turn) this.underWay.delete(name);
    }
  }

  private async run(work: (client: NodeRedisClient) => Promise<unknown>): Promise<unknown> {
    if (this.client === undefined) throw new Error('the connection is not ready');
    return await confirmed(work(this.client));
  }

  private failed(error: unknown): void {
    this.events?.failed(error);
    if (!this.client?.isOpen) this.ended();
  }

  private ended(): void {
    const { client } = this;
    // Not at once: a client that is destroyed while it reads, as when a sharded channel moves, reads for ever.
    if (client !== undefined) this.context.runtime.nextTurn(() => destroy(client));
    this.onClose?.();
    this.events?.ended();
  }
}

/** Converts error replies of the server into those that the backend expects, as for commands. */
function confirmed(answer: Promise<unknown>): Promise<unknown> {
  return answer.catch((error: unknown) => {
    throw asReplyError(error) ?? error;
  });
}
