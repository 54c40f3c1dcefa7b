import type { HeldType, Removal } from '../lock-requests.js';
import { clientOf } from '../owner-ids.js';
import type { Runtime } from '../runtime.js';
import type { Subscription, Wake } from '../subscription.js';
import { channelOf } from './channels.js';
import type { MemoryStore } from './memory-store.js';

const WAKE: Wake = { kind: 'message' };

/** The messages that one backend sends and receives, and its open subscriptions. */
export class ReleaseMessages {
  private readonly subscriptions = new Set<() => void>();
  private closed = false;

  constructor(
    private readonly store: MemoryStore,
    private readonly runtime: Runtime,
  ) {}

  /**
   * Notifies those who listen as this type that the lock may be available, or only the head of a fair lock's queue. If
   * that is empty, notifies waiters of other types. Returns how many other clients listened.
   */
  wake(key: string, type: HeldType, now: number): number {
    const { channels, fairWaiters } = this.store;
    if (channels.isSilent) return 0;
    if (type !== 'fair') return this.publish(channelOf(key, type, ''));
    const owner = fairWaiters.get(key, now)?.head(now)?.[0];
    if (owner === undefined) return this.publish(channelOf(key, 'reentrant', ''));
    return this.publish(channelOf(key, type, clientOf(owner)), { kind: 'message', owner });
  }

  /** Notifies waiters of all types. */
  wakeAll(key: string, now: number): void {
    this.wake(key, 'write', now);
    this.wake(key, 'fair', now);
    if (this.store.fairWaiters.get(key, now) !== undefined) this.wake(key, 'reentrant', now);
  }

  /** Like {@link wake}, if nobody holds the lock. */
  wakeIfFree(key: string, type: HeldType, now: number): void {
    if (this.store.locks.get(key, now) === undefined) this.wake(key, type, now);
  }

  /** Wakes readers if no writer has to go before them any more. */
  wakeReaders(key: string, now: number): void {
    const { locks, waitingWriters } = this.store;
    if (waitingWriters.get(key, now) !== undefined || locks.get(key, now)?.state(now).mode === 'write') return;
    this.wake(key, 'read', now);
  }

  /** Notifies each client of its owners that have lost the lock. */
  notifyRemoved(key: string, removed: readonly string[]): void {
    for (const clientId of new Set(removed.map(clientOf))) {
      const owners = removed.filter((owner) => clientOf(owner) === clientId);
      this.store.clientChannels.publish(clientId, this, { key, owners }, this.runtime);
    }
  }

  publish(channel: string, message = WAKE): number {
    return this.store.channels.publish(channel, this, message, this.runtime);
  }

  subscribe(channel: string, listener: (wake: Wake) => void): Subscription {
    return this.open(() => this.store.channels.subscribe(channel, this, listener));
  }

  subscribeClient(clientId: string, listener: (removal: Removal) => void): Subscription {
    return this.open(() => this.store.clientChannels.subscribe(clientId, this, listener));
  }

  /** Ends all subscriptions. Later ones never become ready. */
  close(): void {
    this.closed = true;
    for (const end of this.subscriptions) end();
    this.subscriptions.clear();
  }

  private open(subscribe: () => () => void): Subscription {
    if (this.closed) return { ready: new Promise(() => {}), close: () => {} };
    const end = subscribe();
    this.subscriptions.add(end);
    const close = () => {
      end();
      this.subscriptions.delete(end);
    };
    return { ready: Promise.resolve(), close };
  }
}
