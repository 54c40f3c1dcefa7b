import type { Redis } from 'ioredis';
import { messageOf } from '../../connection/redis-errors.js';
import type { ChannelKind, SubscriberConnection, SubscriberEvents } from '../link.js';
import { addressOf } from './cluster-nodes.js';
import { letProcessEnd } from './let-process-end.js';

/** The methods of ioredis for each kind. */
const COMMANDS = {
  channel: { subscribe: 'subscribe', unsubscribe: 'unsubscribe' },
  pattern: { subscribe: 'psubscribe', unsubscribe: 'punsubscribe' },
  sharded: { subscribe: 'ssubscribe', unsubscribe: 'sunsubscribe' },
} as const;

/** An ioredis client for subscriptions. */
export class IoredisSubscriber implements SubscriberConnection {
  /** @param client not connected yet */
  constructor(private readonly client: Redis) {}

  get address(): string {
    return addressOf(this.client);
  }

  open(events: SubscriberEvents): void {
    const { client } = this;
    letProcessEnd(client);
    client.on('ready', () => events.ready());
    client.on('end', () => events.ended());
    client.on('moved', () => events.ended());
    client.on('error', (error: unknown) => {
      events.failed(error);
      // When a slot moves, the server ends its sharded subscriptions. ioredis 5 does not expect that.
      if (messageOf(error).startsWith('Command queue state error')) events.ended();
    });
    client.on('message', (channel: string, text: string) => events.message(channel, channel, text));
    client.on('smessage', (channel: string, text: string) => events.message(channel, channel, text));
    client.on('pmessage', (pattern: string, channel: string, text: string) => events.message(pattern, channel, text));
    client.connect().catch(() => {}); // reported by 'error' and 'end'
  }

  subscribe(kind: ChannelKind, channels: readonly string[]): Promise<unknown> {
    return this.client[COMMANDS[kind].subscribe](...channels);
  }

  unsubscribe(kind: ChannelKind, channels: readonly string[]): Promise<unknown> {
    return this.client[COMMANDS[kind].unsubscribe](...channels);
  }

  ping(): Promise<unknown> {
    return this.client.ping();
  }

  close(): void {
    this.client.disconnect();
  }
}
