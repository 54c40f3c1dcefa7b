import { CLAIM } from '../line-backend.js';
import { type HeldType, isReadWrite, type Removal } from '../lock-requests.js';
import { clientOf } from '../owner-ids.js';
import type { Runtime } from '../runtime.js';
import type { Subscription, Wake } from '../subscription.js';
import { channelOf, lineChannel } from './channels.js';
import { grant } from './grant-or-busy.js';
import type { MemoryStore, StoreClock } from './memory-store.js';
import type { WaitingOwners } from './waiting-owners.js';

const WAKE: Wake = { kind: 'message' };

/** The messages that one backend sends and receives, and its open subscriptions. */
export class ReleaseMessages {
  private readonly subscriptions = new Set<() => void>();
  private closed = false;

  constructor(
    private readonly store: MemoryStore,
    private readonly runtime: Runtime,
    private readonly clock: StoreClock,
  ) {}

  /**
   * Notifies those who listen as this type that the lock may be available, or only the head of a fair lock's queue. If
   * that is empty, notifies waiters of other types, and serves the line. Returns how many other clients listened.
   */
  wake(key: string, type: HeldType, now: number): number {
    const { channels, fairWaiters, lines } = this.store;
    if (channels.isSilent && lines.get(key, now) === undefined) return 0;
    if (isReadWrite(type)) return this.publish(channelOf(key, type, ''));
    const owner = type === 'fair' ? fairWaiters.get(key, now)?.head(now)?.[0] : undefined;
    if (owner === undefined) {
      const channel = channelOf(key, 'reentrant', '');
      const listeners = this.publish(channel);
      this.serveLine(key, channels.hasListeners(channel), now);
      return listeners;
    }
    return this.publish(channelOf(key, type, clientOf(owner)), { kind: 'message', owner });
  }

  /**
   * Grants a free lock to the first place of its line, and tells its client. If others listen outside the line, every
   * second time, and if the lock is held, only tells it.
   */
  serveLine(key: string, othersListen: boolean, now: number): void {
    const { lines, locks } = this.store;
    const line = lines.get(key, now);
    const owner = line?.head(now)?.[0];
    if (line === undefined || owner === undefined) return;
    if (line.permits.has(owner) && this.grantPermits(key, now)) return;
    let lock: 'granted' | 'free' | undefined;
    if (locks.get(key, now) === undefined) {
      lock = othersListen && line.told !== owner ? 'free' : 'granted';
      if (lock === 'free') line.told = owner;
      else return this.grantLock(key, line, owner, now);
    }
    this.publish(lineChannel(key, clientOf(owner)), { kind: 'message', owner, lock });
  }

  /** The message counts from a moment on the store's clock, which listeners have to place on theirs. */
  private grantLock(key: string, line: WaitingOwners, owner: string, now: number): void {
    const terms = line.terms.get(owner);
    grant(this.store, { key, type: 'reentrant', owner }, CLAIM, now);
    const message = { kind: 'message', owner, lock: 'granted' } as const;
    const channel = lineChannel(key, clientOf(owner));
    if (terms === undefined) return void this.publish(channel, message);
    const wall = this.clock.wall();
    const { token, reserved } = this.store.fencing.next(key, terms.type, terms.reserve, Math.floor(wall * 1000));
    const begun = { monotonic: now, wall };
    this.publish(channel, { ...message, grant: { nonce: terms.nonce, token, reserved, begun } });
  }

  /** Whether a lock has room for the first place of its line: a permit, or the whole lock. */
  hasRoom(key: string, now: number): boolean {
    const line = this.store.lines.get(key, now);
    const owner = line?.head(now)?.[0];
    if (line === undefined || owner === undefined) return false;
    const record = this.store.locks.get(key, now);
    return record === undefined || record.admits(owner, 'permits', now, line.permits.get(owner));
  }

  /** Grants permits to the first places of a line as long as there is room. @returns whether it granted any */
  private grantPermits(key: string, now: number): boolean {
    let granted = false;
    while (this.hasRoom(key, now)) {
      const line = this.store.lines.get(key, now);
      const owner = line?.head(now)?.[0];
      if (owner === undefined || !line?.permits.has(owner)) break;
      grant(this.store, { key, type: 'permits', owner }, CLAIM, now);
      this.publish(lineChannel(key, clientOf(owner)), { kind: 'message', owner, lock: 'granted' });
      granted = true;
    }
    return granted;
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
