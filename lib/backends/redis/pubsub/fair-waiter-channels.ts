import type { Subscription, Wake } from '../../lock-backend.js';
import type { ConnectionContext } from '../links/connection-context.js';
import { fairChannelPrefix } from '../lock-keys.js';
import type { ChannelSubscriber, ChannelSubscription } from './channel-subscriber.js';
import { wakeListener } from './wake-listener.js';

type Listener = (wake: Wake) => void;

/**
 * The channels of a fair lock's waiters where pub/sub is sharded. Sharded pub/sub has no patterns, so each waiter has
 * its own subscription, whose messages go to all listeners of the lock.
 */
export class FairWaiterChannels {
  private readonly listeners = new Map<string, Set<Listener>>();
  private readonly waiters = new Map<string, ChannelSubscription>();

  constructor(
    private readonly subscriber: ChannelSubscriber,
    private readonly context: ConnectionContext,
  ) {}

  /** Listens to all waiters of a lock, present and future. */
  listen(key: string, listener: Listener): Subscription {
    const listeners = this.listeners.get(key) ?? new Set();
    this.listeners.set(key, listeners);
    const own: Listener = (wake) => listener(wake);
    listeners.add(own);
    const close = () => {
      listeners.delete(own);
      if (listeners.size === 0 && this.listeners.get(key) === listeners) this.listeners.delete(key);
    };
    return { ready: Promise.resolve(), close };
  }

  /** Subscribes to the channel of a waiter. Settles when messages arrive from now on, or when that takes too long. */
  async addWaiter(key: string, owner: string): Promise<void> {
    const { runtime, commandTimeout } = this.context;
    const { ready } = this.subscribe(key, owner);
    await new Promise<void>((resolve) => {
      const timer = runtime.timer(commandTimeout / 2, resolve);
      ready.then(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  removeWaiter(key: string, owner: string): void {
    if (this.waiters.size === 0) return;
    const channel = fairChannelPrefix(key) + owner;
    this.waiters.get(channel)?.close();
    this.waiters.delete(channel);
  }

  private subscribe(key: string, owner: string): ChannelSubscription {
    const channel = fairChannelPrefix(key) + owner;
    let waiter = this.waiters.get(channel);
    if (waiter === undefined) {
      const notify = (wake: Wake) => {
        for (const listener of [...(this.listeners.get(key) ?? [])]) listener(wake);
      };
      const listener = wakeListener(notify, () => owner);
      waiter = this.subscriber.subscribe(channel, 'sharded', listener);
      this.waiters.set(channel, waiter);
    }
    return waiter;
  }
}
