import { type HeldType, isReadWrite, type Removal, type Subscription, type Wake } from '../../lock-backend.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import type { ConnectionContext } from '../links/connection-context.js';
import { clientChannel, fairChannelPrefix, lineChannel, lockChannel, readWriteChannel } from '../lock-keys.js';
import { ChannelSubscriber } from './channel-subscriber.js';
import { FairWaiterChannels } from './fair-waiter-channels.js';
import type { PublishMode } from './publish-mode.js';
import { lineListener, wakeListener } from './wake-listener.js';

type Listener = (wake: Wake) => void;

/** The delay before asking a cluster for its publish mode again if it did not answer. */
const MODE_RETRY_DELAY = 200;

/** Listens to the Redisson channels of locks, semaphores and latches, and to the channel of this client. */
export class ReleaseChannels {
  private readonly subscriber: ChannelSubscriber;
  private readonly fairWaiters: FairWaiterChannels;
  private closed = false;

  constructor(
    connection: RedisConnection,
    private readonly mode: PublishMode,
    private readonly context: ConnectionContext,
  ) {
    this.subscriber = new ChannelSubscriber(connection, context);
    this.fairWaiters = new FairWaiterChannels(this.subscriber, context);
  }

  subscribe(key: string, type: HeldType, clientId: string, listener: Listener): Subscription {
    return this.whenModeIsKnown(key, () => {
      if (type !== 'fair') return this.subscribeToChannel(channelOf(key, type), this.isSharded, listener);
      if (this.isSharded) return this.fairWaiters.listen(key, listener);
      const prefix = fairChannelPrefix(key);
      const ownerOf = (channel: string) => channel.slice(prefix.length);
      return this.subscriber.subscribe(fairPattern(key, clientId), 'pattern', wakeListener(listener, ownerOf));
    });
  }

  /**
   * Listens to a channel of a key. A sharded subscription is used if this channel supports it and sharding is in use.
   */
  subscribeTo(key: string, channel: string, canBeSharded: boolean, listener: Listener): Subscription {
    return this.whenModeIsKnown(key, () => this.subscribeToChannel(channel, canBeSharded && this.isSharded, listener));
  }

  /**
   * Listens for what concerns this client's place in the line of a lock.
   *
   * @param refused called if the user may not listen to the channel
   */
  listenInLine(key: string, clientId: string, listener: Listener, refused: (error: Error) => void): Subscription {
    return this.whenModeIsKnown(key, () => {
      const kind = this.isSharded ? 'sharded' : 'channel';
      return this.subscriber.subscribe(lineChannel(key, clientId), kind, { ...lineListener(listener), refused });
    });
  }

  /** Never sharded, because the script that publishes a forced release may run in another slot. */
  listenToClient(clientId: string, listener: (removal: Removal) => void, missed: () => void = () => {}): Subscription {
    return this.subscriber.subscribe(clientChannel(clientId), 'channel', {
      message: (_, text) => {
        const removal = parseRemoval(text);
        if (removal !== undefined) listener(removal);
      },
      resync: missed,
    });
  }

  /**
   * Resolves once this process can receive messages for a waiter of a fair lock, or after a timeout.
   */
  async addWaiter(key: string, owner: string): Promise<void> {
    if (this.isSharded) await this.fairWaiters.addWaiter(key, owner);
  }

  /** Removes an owner that no longer waits. */
  removeWaiter(key: string, owner: string): void {
    this.fairWaiters.removeWaiter(key, owner);
  }

  /** Whether this process is among the listeners that a release reached: of a fair lock, its `head` if it has one. */
  isSubscribed(key: string, type: HeldType, clientId: string, head: string | undefined): boolean {
    if (type !== 'fair' || head === undefined) return this.subscriber.isSubscribed(channelOf(key, type));
    if (this.isSharded) return this.subscriber.isSubscribed(fairChannelPrefix(key) + head);
    return head.startsWith(`${clientId}:`) && this.subscriber.isSubscribed(fairPattern(key, clientId));
  }

  /** Whether the message connection is ready; undefined while no caller needs it. */
  get isListening(): boolean | undefined {
    return this.subscriber.isListening;
  }

  close(): void {
    this.closed = true;
    this.subscriber.close();
  }

  private get isSharded(): boolean {
    return this.mode.known === 'SPUBLISH';
  }

  private subscribeToChannel(channel: string, isSharded: boolean, listener: Listener): Subscription {
    return this.subscriber.subscribe(channel, isSharded ? 'sharded' : 'channel', wakeListener(listener));
  }

  private whenModeIsKnown(key: string, open: () => Subscription): Subscription {
    if (this.mode.known !== undefined) return open();
    let closed = false;
    let subscription: Subscription | undefined;
    const ready = this.learnMode(key).then(() => {
      if (closed) return new Promise<void>(() => {});
      subscription = open();
      return subscription.ready;
    });
    return {
      ready,
      close: () => {
        closed = true;
        subscription?.close();
      },
    };
  }

  private async learnMode(key: string): Promise<void> {
    try {
      await this.mode.ask(key);
    } catch (error) {
      this.context.onError(error);
      await new Promise<void>((resolve) => {
        this.context.runtime.timer(MODE_RETRY_DELAY, resolve);
      });
      if (this.closed) return new Promise<void>(() => {});
      return this.learnMode(key);
    }
  }
}

function channelOf(key: string, type: HeldType): string {
  return isReadWrite(type) ? readWriteChannel(key) : lockChannel(key);
}

/** Matches the channels of all waiters of this client. */
function fairPattern(key: string, clientId: string): string {
  return `${(fairChannelPrefix(key) + clientId).replace(/[\\*?[\]]/g, '\\$&')}:*`;
}

/** Reads the message about a forced release; undefined when it is not one of ours. */
function parseRemoval(text: string): Removal | undefined {
  let message: Partial<Removal> | null;
  try {
    message = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { key, owners } = message ?? {};
  if (typeof key !== 'string' || !Array.isArray(owners)) return undefined;
  return { key, owners: owners.filter((owner) => typeof owner === 'string') };
}
