import type { Timer } from '../../runtime.js';
import type { ConnectionContext, RedisConnection } from '../connection/redis-connection.js';
import { slotOf } from '../hash-slot.js';
import { type ChannelKind, SubscriberLink } from './subscriber-link.js';

export interface ChannelListener {
  /** A message came, on this channel: for a pattern, one of those that match. */
  message(channel: string, text: string): void;
  /** The subscription was interrupted and stands again: messages may have been lost. */
  resync(): void;
}

export interface ChannelSubscription {
  /** Settles when messages arrive from now on; stays pending through an outage, never rejects. */
  readonly ready: Promise<void>;
  close(): void;
}

/** A channel or pattern that somebody listens to. */
class Topic {
  readonly listeners = new Set<ChannelListener>();
  link: SubscriberLink | undefined;
  ready!: Promise<void>;
  private resolve!: () => void;
  private active = false;
  private interrupted = false;

  constructor(
    readonly name: string,
    readonly kind: ChannelKind,
  ) {
    this.wait();
  }

  /** It stands; true when it does so again, after an interruption. */
  confirm(): boolean {
    const returned = this.interrupted;
    this.active = true;
    this.interrupted = false;
    this.resolve();
    return returned;
  }

  interrupt(): void {
    this.link = undefined;
    if (!this.active) return;
    this.active = false;
    this.interrupted = true;
    this.wait();
  }

  private wait(): void {
    this.ready = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }
}

const FIRST_RETRY_DELAY = 50;
const LONGEST_RETRY_DELAY = 1_000;

/**
 * All subscriptions of a backend: one connection, opened with the first of them (one for each master when they are sharded), and one
 * subscription for each channel, however many listen. A connection that is lost is replaced, and every listener told.
 */
export class ChannelSubscriber {
  private readonly topics = new Map<string, Topic>();
  private readonly links = new Map<string, SubscriberLink>();
  private retry: Timer | undefined;
  private failures = 0;
  private closed = false;

  constructor(
    private readonly connection: RedisConnection,
    private readonly context: ConnectionContext,
  ) {}

  subscribe(name: string, kind: ChannelKind, listener: ChannelListener): ChannelSubscription {
    if (this.closed) return { ready: new Promise(() => {}), close: () => {} };
    let topic = this.topics.get(name);
    if (topic === undefined) {
      topic = new Topic(name, kind);
      this.topics.set(name, topic);
      this.context.runtime.detached(() => this.settle(topic!));
    }
    // A listener of its own for each subscription, so that none ends another.
    const own: ChannelListener = {
      message: (channel, text) => listener.message(channel, text),
      resync: () => listener.resync(),
    };
    topic.listeners.add(own);
    return { ready: topic.ready, close: () => this.leave(topic, own) };
  }

  /** Whether Redis counts this process among those who listen to a channel or pattern. */
  listens(name: string): boolean {
    for (const link of this.links.values()) if (link.listens(name)) return true;
    return false;
  }

  close(): void {
    this.closed = true;
    this.retry?.cancel();
    this.topics.clear();
    for (const link of this.links.values()) link.close();
    this.links.clear();
  }

  private leave(topic: Topic, listener: ChannelListener): void {
    topic.listeners.delete(listener);
    if (topic.listeners.size > 0 || this.topics.get(topic.name) !== topic) return;
    this.topics.delete(topic.name);
    this.context.runtime.detached(() => topic.link?.remove(topic.name));
  }

  /** Gives a topic its link. */
  private settle(topic: Topic): void {
    const slot = topic.kind === 'sharded' ? slotOf(topic.name) : undefined;
    const node = this.connection.nodeOf(slot);
    const link = this.links.get(node) ?? this.open(node, slot);
    if (link === undefined) return this.settleLater();
    topic.link = link;
    link.add(topic.name, topic.kind);
  }

  private open(node: string, slot: number | undefined): SubscriberLink | undefined {
    const client = this.connection.subscriberClient(slot);
    if (client === undefined) return undefined;
    const { host, port } = client.options;
    const isCurrent = () => this.connection.hasNode(`${host}:${port}`) && this.ownsItsTopics(node, link);
    const link = new SubscriberLink(
      client,
      this.context,
      {
        confirmed: (name) => this.confirmed(name),
        message: (name, channel, text) => this.dispatch(name, (listener) => listener.message(channel, text)),
        down: () => this.lost(node, link),
      },
      isCurrent,
    );
    this.links.set(node, link);
    return link;
  }

  private ownsItsTopics(node: string, link: SubscriberLink): boolean {
    const own = [...this.topics.values()].filter((topic) => topic.link === link && topic.kind === 'sharded');
    return own.every(({ name }) => this.connection.nodeOf(slotOf(name)) === node);
  }

  private confirmed(name: string): void {
    this.failures = 0;
    const topic = this.topics.get(name);
    if (topic?.confirm()) this.dispatch(name, (listener) => listener.resync());
  }

  private lost(node: string, link: SubscriberLink): void {
    if (this.links.get(node) === link) this.links.delete(node);
    for (const topic of this.topics.values()) if (topic.link === link) topic.interrupt();
    if (node !== '') this.connection.refreshNodes();
    this.settleLater();
  }

  private settleLater(): void {
    if (this.closed || this.retry !== undefined) return;
    const { runtime } = this.context;
    const delay = Math.min(FIRST_RETRY_DELAY * 2 ** this.failures++, LONGEST_RETRY_DELAY);
    this.retry = runtime.timer(delay * (0.5 + runtime.random() / 2), () => {
      this.retry = undefined;
      for (const topic of this.topics.values()) if (topic.link === undefined) this.settle(topic);
    });
  }

  /** Listeners may come and go while it runs. */
  private dispatch(name: string, tell: (listener: ChannelListener) => void): void {
    for (const listener of [...(this.topics.get(name)?.listeners ?? [])]) {
      try {
        tell(listener);
      } catch (error) {
        this.context.onError(error);
      }
    }
  }
}
