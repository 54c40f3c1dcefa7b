import { isReadWrite, type LockType } from '../lock-requests.js';
import type { Runtime } from '../runtime.js';
import type { Wake } from '../subscription.js';

type Client = object;
interface Subscriber<Message> {
  readonly listener: (message: Message) => void;
  open: boolean;
}

/** The channel of a lock that this type listens to. Fair waiters hear only messages for owners of their own client. */
export function channelOf(key: string, type: LockType, clientId: string): string {
  if (type === 'fair') return `fair:${clientId}:${key}`;
  return isReadWrite(type) ? `rw:${key}` : `lock:${key}`;
}

/** The client of an owner `<clientId>:<n>`. */
export function clientOf(owner: string): string {
  return owner.slice(0, owner.lastIndexOf(':'));
}

/** Pub/sub inside the process. Messages arrive in the order in which they were sent, after the call that sent them has returned. */
export class Channels<Message = Wake> {
  private readonly channels = new Map<string, Map<Client, Set<Subscriber<Message>>>>();

  /** Returns the function that ends this subscription, and no other. Calling it again does nothing. */
  subscribe(channel: string, client: Client, listener: (message: Message) => void): () => void {
    const subscriber: Subscriber<Message> = { listener, open: true };
    const clients = this.channels.get(channel) ?? new Map<Client, Set<Subscriber<Message>>>();
    const subscribers = clients.get(client) ?? new Set();
    this.channels.set(channel, clients.set(client, subscribers.add(subscriber)));
    return () => {
      if (!subscriber.open) return;
      subscriber.open = false;
      subscribers.delete(subscriber);
      if (subscribers.size === 0) clients.delete(client);
      if (clients.size === 0) this.channels.delete(channel);
    };
  }

  get isSilent(): boolean {
    return this.channels.size === 0;
  }

  /** Returns how many other clients listen. */
  publish(channel: string, client: Client, message: Message, runtime: Runtime): number {
    const clients = this.channels.get(channel);
    if (clients === undefined) return 0;
    for (const subscribers of clients.values()) {
      for (const subscriber of subscribers) {
        // A microtask each, outside the releaser's scope: a listener that throws does not keep the message from the others.
        runtime.detached(() => queueMicrotask(() => subscriber.open && subscriber.listener(message)));
      }
    }
    return clients.size - (clients.has(client) ? 1 : 0);
  }
}
