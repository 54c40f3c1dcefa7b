import { toBytes, toText } from '../../../../lib/backends/redis/in-process/bytes.js';
import type { MessageListener } from '../../../../lib/backends/redis/in-process/in-process-server.js';
import { OK, type Reply } from '../../../../lib/backends/redis/in-process/redis-error.js';
import type { ChannelKind, SubscriberConnection, SubscriberEvents } from '../../../../lib/backends/redis/links/link.js';
import type { Cable } from './cable.js';
import { ReplyError, SimulatedConnection } from './simulated-connection.js';
import type { SimulatedServer } from './simulated-server.js';

/** How long a message takes at most that is delayed with all that follow, in milliseconds. */
const LONGEST_DELAY = 1_500;

/** A connection for subscriptions. When a message gets lost, so do all that follow. */
export class SimulatedSubscriber implements SubscriberConnection {
  private connection: SimulatedConnection | undefined;
  private readonly unanswered = new Set<(error: Error) => void>();

  constructor(
    private readonly cable: Cable,
    private readonly server: SimulatedServer,
  ) {}

  get address(): string {
    return this.server.name;
  }

  open(events: SubscriberEvents): void {
    const connection = new SimulatedConnection(this.cable, this.server, (error) => {
      for (const fail of this.unanswered) fail(error);
      events.failed(error);
      events.ended();
    });
    this.connection = connection;
    this.listener = (subscribed, channel, text) => this.deliver(connection, events, [subscribed, channel, text]);
    connection.open(() => events.ready());
  }

  subscribe(kind: ChannelKind, channels: readonly string[]): Promise<unknown> {
    const { server, listener, connection } = this;
    return this.request(() => {
      const { redis } = server;
      for (const channel of channels.map(toBytes)) {
        redis.subscribe(kind, channel, listener);
        connection?.whenClosedAtServer(() => redis.unsubscribe(kind, channel, listener));
      }
      return OK;
    });
  }

  unsubscribe(kind: ChannelKind, channels: readonly string[]): Promise<unknown> {
    return this.request(() => {
      for (const channel of channels.map(toBytes)) this.server.redis.unsubscribe(kind, channel, this.listener);
      return OK;
    });
  }

  ping(): Promise<unknown> {
    return this.request(() => OK);
  }

  close(): void {
    this.connection?.destroy(new Error('it is not needed any more'));
  }

  private listener: MessageListener = () => {};

  private deliver(connection: SimulatedConnection, events: SubscriberEvents, message: readonly string[]): void {
    const { network } = this.cable;
    if (!network.hears()) connection.deafen();
    if (network.isLate()) connection.delay(network.within(LONGEST_DELAY));
    const [subscribed, channel, text] = message.map((part) => toText(part) as string);
    connection.push(() => events.message(subscribed, channel, text));
  }

  private request(execute: () => Reply): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.unanswered.add(reject);
      this.connection?.request(execute, (reply) => {
        this.unanswered.delete(reject);
        if (reply instanceof ReplyError) reject(reply);
        else resolve(reply);
      });
    });
  }
}
