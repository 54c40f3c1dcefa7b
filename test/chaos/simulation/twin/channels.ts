import { type HeldType, isReadWrite } from '../../../../lib/backends/lock-requests.js';
import type { Runtime } from '../../../../lib/backends/runtime.js';
import type { Wake } from '../../../../lib/backends/subscription.js';

/** The backend that a subscription or message belongs to. */
type Backend = object;
interface Subscriber<Message> {
  readonly listener: (message: Message) => void;
  open: boolean;
}

/** The channel of a lock that this type listens to. Fair waiters receive only messages for owners of their client. */
export function channelOf(key: string, type: HeldType, clientId: string): string {
  if (type === 'fair') return `fair:${clientId}:${key}`;
  return isReadWrite(type) ? `rw:${key}` : `lock:${key}`;
}

/** The channel of a client that waits in the line of a lock. */
export function lineChannel(key: string, clientId: string): string {
  return `line:${clientId}:${key}`;
}

/**
 * Pub/sub inside the process. Messages arrive in the order in which they were sent, after the call that sent them has
 * returned.
 */
export class Channels<Message = Wake> {
  private readonly channels = new Map<string, Map<Backend, Set<Subscriber<Message>>>>();

  /** Returns a function that ends only this subscription. Calling it again does nothing. */
  subscribe(channel: string, backend: Backend, listener: (message: Message) => void): () => void {
    const subscriber: Subscriber<Message> = { listener, open: true };
    const backends = this.channels.get(channel) ?? new Map<Backend, Set<Subscriber<Message>>>();
    const subscribers = backends.get(backend) ?? new Set();
    this.channels.set(channel, backends.set(backend, subscribers.add(subscriber)));
    return () => {
      if (!subscriber.open) return;
      subscriber.open = false;
      subscribers.delete(subscriber);
      if (subscribers.size === 0) backends.delete(backend);
      if (backends.size === 0) this.channels.delete(channel);
    };
  }

  get isSilent(): boolean {
    return this.channels.size === 0;
  }

  hasListeners(channel: string): boolean {
    return this.channels.has(channel);
  }

  /** Returns how many other backends listen. */
  publish(channel: string, backend: Backend, message: Message, runtime: Runtime): number {
    const backends = this.channels.get(channel);
    if (backends === undefined) return 0;
    for (const subscribers of backends.values()) {
      for (const subscriber of subscribers) {
        // Each listener runs in its own microtask, outside the releaser's scope, so that one that throws does not
        // affect the others.
        runtime.detached(() => queueMicrotask(() => subscriber.open && subscriber.listener(message)));
      }
    }
    return backends.size - (backends.has(backend) ? 1 : 0);
  }
}
