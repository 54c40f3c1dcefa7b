import { BackOff } from '../../back-off.js';
import type { Timer } from '../../runtime.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import { slotOf } from '../hash-slot.js';
import type { ConnectionContext } from '../links/connection-context.js';
import type { ChannelKind } from '../links/link.js';
import { SubscriberLink } from './subscriber-link.js';
import { type ChannelListener, Topic } from './topic.js';

export interface ChannelSubscription {
  /** Settles when messages arrive from now on. It stays pending during an outage, and never rejects. */
  readonly ready: Promise<void>;
  close(): void;
}

/**
 * All subscriptions of a backend. They share one connection, which the first of them opens (one for each master when
 * they are sharded), and one subscription for each channel, however many listeners it has. A lost connection is
 * replaced, and every listener is notified.
 */
export class ChannelSubscriber {
  private readonly topics = new Map<string, Topic>();
  private readonly links = new Map<string, SubscriberLink>();
  private readonly backOff: BackOff;
  private retry: Timer | undefined;
  private closed = false;

  constructor(
    private readonly connection: RedisConnection,
    private readonly context: ConnectionContext,
  ) {
    this.backOff = new BackOff(context.runtime);
  }

  subscribe(name: string, kind: ChannelKind, listener: ChannelListener): ChannelSubscription {
    if (this.closed) return { ready: new Promise(() => {}), close: () => {} };
    let topic = this.topics.get(name);
    if (topic === undefined) {
      topic = new Topic(name, kind);
      this.topics.set(name, topic);
      this.context.runtime.detached(() => this.assignLink(topic!));
    }
    // A separate listener for each subscription, so that closing one does not close another.
    const own: ChannelListener = {
      message: (channel, text) => listener.message(channel, text),
      resync: () => listener.resync(),
      refused: listener.refused,
    };
    topic.listeners.add(own);
    return { ready: topic.ready, close: () => this.unsubscribe(topic, own) };
  }

  /** Whether all subscriptions are confirmed. Undefined if there are none. */
  get isListening(): boolean | undefined {
    const topics = [...this.topics.values()];
    return topics.length === 0 ? undefined : topics.every(({ link }) => link?.isReady);
  }

  /** Whether Redis counts this process among the listeners of a channel or pattern. */
  isSubscribed(name: string): boolean {
    for (const link of this.links.values()) if (link.isSubscribed(name)) return true;
    return false;
  }

  close(): void {
    this.closed = true;
    this.retry?.cancel();
    this.topics.clear();
    for (const link of this.links.values()) link.close();
    this.links.clear();
  }

  private unsubscribe(topic: Topic, listener: ChannelListener): void {
    topic.listeners.delete(listener);
    if (topic.listeners.size > 0 || this.topics.get(topic.name) !== topic) return;
    this.topics.delete(topic.name);
    this.context.runtime.detached(() => topic.link?.remove(topic.name));
  }

  private assignLink(topic: Topic): void {
    const slot = topic.kind === 'sharded' ? slotOf(topic.name) : undefined;
    const node = this.connection.topology.nodeOfSlot(slot);
    const link = this.links.get(node) ?? this.openLink(node, slot);
    if (link === undefined) return this.scheduleRetry();
    topic.link = link;
    link.add(topic.name, topic.kind);
  }

  private openLink(node: string, slot: number | undefined): SubscriberLink | undefined {
    const { topology } = this.connection;
    const subscriber = topology.subscriber(slot);
    if (subscriber === undefined) return undefined;
    const { address } = subscriber;
    const link: SubscriberLink = new SubscriberLink(subscriber, this.context, {
      confirmed: (name) => this.confirmed(name),
      message: (name, channel, text) => this.notify(name, (listener) => listener.message(channel, text)),
      refused: (name, error) => this.refused(name, error),
      down: (silent) => this.lost(node, link, silent),
      isCurrent: () => topology.has(address) && this.hasSlotsOf(node, link),
    });
    this.links.set(node, link);
    return link;
  }

  /** Whether a node still has the slots of all sharded topics of a link. */
  private hasSlotsOf(node: string, link: SubscriberLink): boolean {
    const sharded = [...this.topics.values()].filter((topic) => topic.link === link && topic.kind === 'sharded');
    return sharded.every(({ name }) => this.connection.nodeOfKey(name) === node);
  }

  private confirmed(name: string): void {
    this.backOff.reset();
    const topic = this.topics.get(name);
    if (topic?.confirm()) this.notify(name, (listener) => listener.resync());
  }

  private refused(name: string, error: Error): void {
    let isHandled = false;
    this.notify(name, ({ refused }) => {
      isHandled ||= refused !== undefined;
      refused?.(error);
    });
    if (!isHandled) this.context.onError(error);
  }

  private lost(node: string, link: SubscriberLink, silent: boolean): void {
    if (this.links.get(node) === link) this.links.delete(node);
    const topics = [...this.topics.values()].filter((topic) => topic.link === link);
    for (const topic of topics) topic.interrupt();
    if (node !== '') this.connection.topology.refresh();
    this.scheduleRetry();
    // It may take long to subscribe again, and commands may get through in the meantime.
    if (silent) for (const { name } of topics) this.notify(name, (listener) => listener.resync());
  }

  private scheduleRetry(): void {
    if (this.closed || this.retry !== undefined) return;
    this.retry = this.context.runtime.timer(this.backOff.next(), () => {
      this.retry = undefined;
      for (const topic of this.topics.values()) if (topic.link === undefined) this.assignLink(topic);
    });
  }

  /** Calls all listeners of a channel. Listeners may be added and removed meanwhile. */
  private notify(name: string, report: (listener: ChannelListener) => void): void {
    for (const listener of [...(this.topics.get(name)?.listeners ?? [])]) {
      try {
        report(listener);
      } catch (error) {
        this.context.onError(error);
      }
    }
  }
}
