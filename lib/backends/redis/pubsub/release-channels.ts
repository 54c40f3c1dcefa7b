import type { LockType, Removal, Subscription, Wake } from '../../lock-backend.js';
import type { ConnectionContext, RedisConnection } from '../connection/redis-connection.js';
import { clientChannel, fairChannelPrefix, isReadWrite, lockChannel, readWriteChannel } from '../lock-keys.js';
import { type ChannelListener, ChannelSubscriber, type ChannelSubscription } from './channel-subscriber.js';
import type { PublishMode } from './publish-mode.js';

type Listener = (wake: Wake) => void;

/** Pause between questions to a cluster that does not answer. */
const ASK_AGAIN = 200;

/** Who listens for which lock, on Redisson's channels. */
export class ReleaseChannels {
  private readonly subscriber: ChannelSubscriber;
  /** Sharded pub/sub has no patterns: there, each waiter of a fair lock has a subscription of its own. */
  private readonly fairListeners = new Map<string, Set<Listener>>();
  private readonly fairWaiters = new Map<string, ChannelSubscription>();
  private closed = false;

  constructor(
    connection: RedisConnection,
    private readonly mode: PublishMode,
    private readonly context: ConnectionContext,
  ) {
    this.subscriber = new ChannelSubscriber(connection, context);
  }

  subscribe(key: string, type: LockType, clientId: string, listener: Listener): Subscription {
    return this.whenModeKnown(() => this.open(key, type, clientId, listener));
  }

  /** Listens to a channel that is sharded if `canBeSharded` and the others are. */
  subscribeTo(channel: string, canBeSharded: boolean, listener: Listener): Subscription {
    return this.whenModeKnown(() => {
      const sharded = canBeSharded && this.mode.known === 'SPUBLISH';
      return this.subscriber.subscribe(channel, sharded ? 'sharded' : 'channel', listenerOf(listener));
    });
  }

  /** Never sharded: whoever releases by force need not be in the slot of this channel. */
  listenToClient(clientId: string, listener: (removal: Removal) => void): Subscription {
    const hear = (text: string) => {
      const removal = removalOf(text);
      if (removal !== undefined) listener(removal);
    };
    return this.subscriber.subscribe(clientChannel(clientId), 'channel', {
      message: (_, text) => hear(text),
      resync: () => {}, // the next renewals tell what was missed
    });
  }

  /** Settles when what is published to a waiter of a fair lock reaches this process, or takes too long to. */
  async expect(key: string, owner: string): Promise<void> {
    if (this.mode.known !== 'SPUBLISH') return;
    const channel = fairChannelPrefix(key) + owner;
    let waiter = this.fairWaiters.get(channel);
    if (waiter === undefined) {
      const tell = (wake: Wake) => {
        for (const listener of [...(this.fairListeners.get(key) ?? [])]) listener(wake);
      };
      waiter = this.subscriber.subscribe(
        channel,
        'sharded',
        listenerOf(tell, () => owner),
      );
      this.fairWaiters.set(channel, waiter);
    }
    const { ready } = waiter;
    await new Promise<void>((resolve) => {
      const timer = this.context.runtime.timer(this.context.commandTimeout / 2, resolve);
      ready.then(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  /** This owner does not wait any more. */
  forget(key: string, owner: string): void {
    if (this.fairWaiters.size === 0) return;
    const channel = fairChannelPrefix(key) + owner;
    this.fairWaiters.get(channel)?.close();
    this.fairWaiters.delete(channel);
  }

  /** Whether this process is among those whom a release reached. */
  hears(key: string, type: LockType, clientId: string, head: string | undefined): boolean {
    if (type !== 'fair') return this.subscriber.listens(channelOf(key, type));
    if (this.mode.known === 'SPUBLISH') return this.subscriber.listens(fairChannelPrefix(key) + head);
    return head?.startsWith(`${clientId}:`) === true && this.subscriber.listens(fairPattern(key, clientId));
  }

  close(): void {
    this.closed = true;
    this.subscriber.close();
  }

  private whenModeKnown(open: () => Subscription): Subscription {
    if (this.mode.known !== undefined) return open();
    let closed = false;
    let subscription: Subscription | undefined;
    const ready = this.modeKnown().then(() => {
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

  private open(key: string, type: LockType, clientId: string, listener: Listener): Subscription {
    const sharded = this.mode.known === 'SPUBLISH';
    if (type !== 'fair') {
      return this.subscriber.subscribe(channelOf(key, type), sharded ? 'sharded' : 'channel', listenerOf(listener));
    }
    if (sharded) return this.openFair(key, listener);
    const prefix = fairChannelPrefix(key);
    const owner = (channel: string) => channel.slice(prefix.length);
    return this.subscriber.subscribe(fairPattern(key, clientId), 'pattern', listenerOf(listener, owner));
  }

  private openFair(key: string, listener: Listener): Subscription {
    const listeners = this.fairListeners.get(key) ?? new Set();
    this.fairListeners.set(key, listeners);
    const own: Listener = (wake) => listener(wake);
    listeners.add(own);
    const close = () => {
      listeners.delete(own);
      if (listeners.size === 0 && this.fairListeners.get(key) === listeners) this.fairListeners.delete(key);
    };
    return { ready: Promise.resolve(), close };
  }

  private async modeKnown(): Promise<void> {
    try {
      await this.mode.ask();
    } catch (error) {
      this.context.onError(error);
      await new Promise<void>((resolve) => {
        this.context.runtime.timer(ASK_AGAIN, resolve);
      });
      if (this.closed) return new Promise<void>(() => {});
      return this.modeKnown();
    }
  }
}

function channelOf(key: string, type: LockType): string {
  return isReadWrite(type) ? readWriteChannel(key) : lockChannel(key);
}

/** The channels of all waiters of this client. */
function fairPattern(key: string, clientId: string): string {
  return `${(fairChannelPrefix(key) + clientId).replace(/[\\*?[\]]/g, '\\$&')}:*`;
}

function listenerOf(listener: Listener, owner?: (channel: string) => string): ChannelListener {
  return {
    message: (channel) =>
      listener(owner === undefined ? { kind: 'message' } : { kind: 'message', owner: owner(channel) }),
    resync: () => listener({ kind: 'resync' }),
  };
}

/** What a message says; undefined: it is not one of ours. */
function removalOf(text: string): Removal | undefined {
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
