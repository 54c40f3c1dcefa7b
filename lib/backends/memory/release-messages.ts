import { CLAIM, HEAD_START } from '../line-backend.js';
import { type HeldType, isReadWrite, type OwnerRef, type Removal } from '../lock-requests.js';
import { clientOf } from '../owner-ids.js';
import type { Runtime } from '../runtime.js';
import type { Grant, Subscription, Wake } from '../subscription.js';
import { channelOf, lineChannel } from './channels.js';
import { grant } from './grant-or-busy.js';
import type { MemoryStore } from './memory-store.js';
import type { WaitingOwners } from './waiting-owners.js';

const WAKE: Wake = { kind: 'message' };

/** The messages that one backend sends and receives, and its open subscriptions. */
export class ReleaseMessages {
  private readonly subscriptions = new Set<() => void>();
  private closed = false;

  constructor(
    private readonly store: MemoryStore,
    private readonly runtime: Runtime,
    private readonly wallMicros: () => number,
  ) {}

  /**
   * Notifies those who listen as this type that the lock may be available, or only the head of a fair lock's queue. If
   * that is empty, notifies waiters of other types, and serves the line. Returns how many other clients listened.
   */
  wake(key: string, type: HeldType, now: number): number {
    const { channels, fairWaiters, lines } = this.store;
    if (channels.isSilent && lines.get(key, now) === undefined) return 0;
    const owner = type === 'fair' ? fairWaiters.get(key, now)?.head(now)?.[0] : undefined;
    if (owner === undefined) {
      const channel = channelOf(key, isReadWrite(type) ? type : 'reentrant', '');
      const listeners = this.publish(channel);
      const headStart = channels.hasListeners(channel) ? HEAD_START : undefined;
      this.serveLine(key, now, isReadWrite(type) ? 0 : (headStart ?? 'nobody'));
      return listeners;
    }
    return this.publish(channelOf(key, type, clientOf(owner)), { kind: 'message', owner });
  }

  /**
   * Grants a free lock to the first place of its line, and tells its client. If others listen outside the line, every
   * second time, and if the lock is held, only tells it. Readers and writers are always only told.
   *
   * @param outside after a release, whether nobody listens outside the line, or how long their head start is: 0 if it is
   *   uncertain whether any do
   */
  serveLine(key: string, now: number, outside?: number | 'nobody'): void {
    const { lines, locks } = this.store;
    const line = lines.get(key, now);
    const owner = line?.head(now)?.[0];
    if (line === undefined || owner === undefined) return;
    if (line.permits.has(owner) && this.grantPermits(key, now)) return;
    if (line.typeOf(owner) !== undefined) return this.tell(key, line, now);
    let lock: 'granted' | 'free' | undefined;
    if (locks.get(key, now) === undefined) {
      const { headStartUntil } = line;
      if (headStartUntil === undefined && typeof outside === 'number') {
        line.headStartUntil = now + outside;
        if (outside > 0) lock = 'free';
      } else if (headStartUntil !== undefined && headStartUntil > now && outside === undefined) {
        lock = 'free';
      } else {
        line.headStartUntil = undefined;
        return this.grantLock(key, line, owner, now);
      }
    }
    this.publish(lineChannel(key, clientOf(owner)), { kind: 'message', owner, lock });
  }

  private grantLock(key: string, line: WaitingOwners, owner: string, now: number): void {
    const details = this.grantOf(key, line, owner, now);
    grant(this.store, { key, type: 'reentrant', owner }, CLAIM, now); // ends the place
    const message = { kind: 'message', owner, lock: 'granted' } as const;
    this.publish(lineChannel(key, clientOf(owner)), details === undefined ? message : { ...message, grant: details });
  }

  private grantOf(key: string, line: WaitingOwners, owner: string, now: number): Grant | undefined {
    const terms = line.terms.get(owner);
    if (terms === undefined) return undefined;
    const { type, nonce, reserve, askedAt } = terms;
    const { token, reserved } = this.store.fencing.next(key, type, reserve, this.wallMicros());
    return { nonce, token, reserved, after: Math.floor(now - askedAt) };
  }

  /**
   * Whether a lock has room for the first place of its line: the whole lock, or room beside its readers; or a permit for
   * one of the places in front.
   */
  hasRoom(key: string, now: number): boolean {
    const line = this.store.lines.get(key, now);
    const owner = line?.head(now)?.[0];
    if (line === undefined || owner === undefined) return false;
    const record = this.store.locks.get(key, now);
    if (record === undefined) return true;
    if (line.typeOf(owner) === 'read') return record.state(now).mode === 'read';
    return this.firstWithPermit(key, now) !== undefined;
  }

  /** Grants permits to the places in front, in their order. @returns whether it granted any */
  private grantPermits(key: string, now: number): boolean {
    let granted = false;
    for (let owner = this.firstWithPermit(key, now); owner !== undefined; owner = this.firstWithPermit(key, now)) {
      grant(this.store, { key, type: 'permits', owner }, CLAIM, now);
      this.publish(lineChannel(key, clientOf(owner)), { kind: 'message', owner, lock: 'granted' });
      granted = true;
    }
    return granted;
  }

  /**
   * The first place that wants one of n permits and has room. A place that wants a smaller n may have no room where one
   * behind it has.
   */
  private firstWithPermit(key: string, now: number): string | undefined {
    const line = this.store.lines.get(key, now);
    const record = this.store.locks.get(key, now);
    for (const owner of line?.owners(now) ?? []) {
      const permits = line?.permits.get(owner);
      if (permits === undefined) return undefined;
      if (record?.admits(owner, 'permits', now, permits) ?? true) return owner;
    }
    return undefined;
  }

  /** Tells the reader or writer in front that it may ask, and all readers right behind a reader. */
  private tell(key: string, line: WaitingOwners, now: number): void {
    const hasRoom = this.hasRoom(key, now);
    for (const owner of line.atFront(now)) {
      // A place that may now acquire the lock, and does not, lapses.
      if (hasRoom) line.expireBy(owner, now + CLAIM, now);
      this.publish(lineChannel(key, clientOf(owner)), { kind: 'message', owner });
    }
  }

  /** Notifies waiters of all types. */
  wakeAll(key: string, now: number): void {
    this.publish(channelOf(key, 'write', ''));
    this.wake(key, 'fair', now);
    if (this.store.fairWaiters.get(key, now) !== undefined) this.wake(key, 'reentrant', now);
  }

  /** Like {@link wake}, if nobody holds the lock. */
  wakeIfFree(key: string, type: HeldType, now: number): void {
    if (this.store.locks.get(key, now) === undefined) this.wake(key, type, now);
  }

  /** Wakes the readers of a quorum, who wait in no line, if they need not let a writer go first any more. */
  wakeReaders({ key, owner }: OwnerRef, now: number): void {
    const { locks, lines } = this.store;
    if (lines.get(key, now)?.ahead({ key, owner, type: 'read' }, now) !== undefined) return;
    if (locks.get(key, now)?.state(now).mode !== 'write') this.publish(channelOf(key, 'read', ''));
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
