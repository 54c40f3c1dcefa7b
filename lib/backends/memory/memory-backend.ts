import {
  type AcquireAllReply,
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
  BackendError,
  type LockBackend,
  type LockState,
  type LockType,
  type OwnerRef,
  type ReleaseReply,
  type ReleaseRequest,
  type Removal,
  type RenewRequest,
  type Subscription,
  TICKET_LIFETIME,
  type TransferRequest,
  type Wake,
} from '../lock-backend.js';
import type { Runtime } from '../runtime.js';
import { grant, keepPlace, leave, obstacle, waitingRoom } from './admission.js';
import { channelOf, clientOf } from './channels.js';
import { type MemoryStore, processStore, type StoreClock } from './memory-store.js';
import { MemorySynchronizers } from './memory-synchronizers.js';

export interface MemoryBackendOptions {
  readonly runtime: Runtime;
  /** Default: one that all backends of this process share. */
  readonly store?: MemoryStore;
}

/**
 * Locks inside one process, with the semantics that they have on Redis: for tests, demos and simulations. Several backends
 * on one store behave like several processes on one Redis. It starts no timers: leases and places lapse when somebody
 * looks, and what nobody looks at is swept by later acquisitions.
 */
export class MemoryBackend implements LockBackend {
  readonly description = 'memory';
  readonly synchronizers: MemorySynchronizers;
  private readonly runtime: Runtime;
  private readonly store: MemoryStore;
  private readonly clock: StoreClock;
  private readonly unsubscribe = new Set<() => void>();
  private closed = false;

  constructor(options: MemoryBackendOptions) {
    this.runtime = options.runtime;
    this.store = options.store ?? processStore();
    this.clock = this.store.clock ?? options.runtime;
    this.synchronizers = new MemorySynchronizers({
      store: this.store,
      now: () => this.now(),
      publish: (channel) => this.store.channels.publish(channel, this, { kind: 'message' }, this.runtime),
      listen: (channel, listener) => this.listen(channel, listener),
    });
  }

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const now = this.now();
    const busy = obstacle(this.store, request, now);
    if (busy !== undefined) {
      keepPlace(this.store, request, now);
      return busy;
    }
    grant(this.store, request, request.leaseTime, now);
    return this.token(request.key, request.type, request.reserve);
  }

  canAcquireTogether(): boolean {
    return true;
  }

  async acquireAll(requests: readonly AcquireRequest[]): Promise<AcquireAllReply> {
    const now = this.now();
    for (const [index, request] of requests.entries()) {
      const busy = obstacle(this.store, request, now);
      if (busy !== undefined) return { ...busy, index };
    }
    for (const request of requests) grant(this.store, request, request.leaseTime, now);
    return { acquired: true, tokens: requests.map(({ key, type }) => this.token(key, type, 0).token) };
  }

  async release(request: ReleaseRequest): Promise<ReleaseReply> {
    const now = this.now();
    const { key, type, owner, quietly } = request;
    const hold = this.store.holds.get(key, now);
    if (!hold?.has(owner, type, now))
      return { released: false, listeners: 0, published: false, resent: false, at: now };
    hold.remove(owner, type);
    const over = hold.isOver(now);
    if (over) this.store.holds.delete(key);
    // A reader that leaves others behind makes room for nobody; a writer that goes on reading makes room for readers.
    const published = !quietly && (over || type === 'write');
    return { released: true, listeners: published ? this.wake(key, type, now) : 0, published, resent: false };
  }

  async transfer(request: TransferRequest): Promise<Acquired | undefined> {
    const now = this.now();
    const { key, type, from, to, leaseTime } = request;
    const hold = this.store.holds.get(key, now);
    if (hold === undefined) return undefined;
    if (hold.has(from, type, now)) {
      hold.remove(from, type);
      if (!hold.isOver(now) && !hold.admits(to, type, now)) {
        // A writer that goes on reading: its write part ends, but nobody can write beside it.
        this.wake(key, type, now);
        return undefined;
      }
    } else if (!hold.has(to, type, now)) {
      return undefined;
    }
    grant(this.store, { key, type, owner: to }, leaseTime, now);
    return this.token(key, type, request.reserve);
  }

  async renew(request: RenewRequest): Promise<boolean> {
    const now = this.now();
    const hold = this.store.holds.get(request.key, now);
    if (!hold?.has(request.owner, request.type, now)) return false;
    hold.put(request.owner, request.type, now + request.leaseTime, now);
    return true;
  }

  async raiseToken(key: string, type: LockType, token: number): Promise<void> {
    this.now();
    this.store.fencing.raise(key, type, token, this.wallMicros());
  }

  async refreshWaiters(places: readonly OwnerRef[], fairWaitTimeout: number): Promise<readonly boolean[]> {
    const now = this.now();
    const kept = places.map(
      ({ key, type, owner }) =>
        waitingRoom(this.store, type)
          ?.get(key, now)
          ?.refresh(owner, now + fairWaitTimeout, now) ?? false,
    );
    // A head may have become it because the one before it, who was woken, died.
    const queues = new Set(places.filter(({ type }) => type === 'fair').map(({ key }) => key));
    for (const key of queues) if (this.isFree(key, now)) this.wake(key, 'fair', now);
    return kept;
  }

  async removeWaiter(place: OwnerRef): Promise<void> {
    const now = this.now();
    const { key, type, owner } = place;
    const wasHead = this.store.queues.get(key, now)?.head(now)?.[0] === owner;
    if (!leave(this.store, place, now)) return;
    if (type === 'fair' && wasHead && this.isFree(key, now)) this.wake(key, type, now);
    if (type === 'write' && this.readersMayEnter(key, now)) this.wake(key, type, now);
  }

  async forceRelease(key: string): Promise<readonly string[]> {
    const now = this.now();
    const hold = this.store.holds.get(key, now);
    if (hold === undefined || hold.isOver(now)) return [];
    const owners = hold.state(now).owners.map(({ owner }) => owner);
    this.store.holds.delete(key);
    for (const type of ['reentrant', 'write', 'fair'] as const) this.wake(key, type, now);
    for (const clientId of new Set(owners.map(clientOf))) {
      const removal = { key, owners: owners.filter((owner) => clientOf(owner) === clientId) };
      this.store.clients.publish(clientId, this, removal, this.runtime);
    }
    return owners;
  }

  async inspect(key: string): Promise<LockState> {
    const now = this.now();
    const state = this.store.holds.get(key, now)?.state(now) ?? { mode: 'free', owners: [] };
    return {
      ...state,
      queue: this.store.queues.get(key, now)?.owners(now) ?? [],
      token: this.store.fencing.lastOf(key, this.wallMicros()),
    };
  }

  async takeTicket(key: string, holder: string): Promise<number> {
    const now = this.now();
    const { lines } = this.store;
    const last = lines.get(key, now);
    const count = last?.holder === holder ? last.count + 1 : 1;
    lines.set(key, { holder, count, until: now + TICKET_LIFETIME }, now);
    return count;
  }

  subscribe(key: string, type: LockType, clientId: string, listener: (wake: Wake) => void): Subscription {
    return this.listen(channelOf(key, type, clientId), listener);
  }

  listenToClient(clientId: string, listener: (removal: Removal) => void): Subscription {
    return this.open(() => this.store.clients.subscribe(clientId, this, listener));
  }

  /** Ends its subscriptions and rejects calls from now on. Locks stay until they are released elsewhere or lapse. */
  async close(): Promise<void> {
    this.closed = true;
    for (const end of this.unsubscribe) end();
    this.unsubscribe.clear();
  }

  /** @throws BackendError after {@link close} */
  private now(): number {
    if (this.closed) throw new BackendError('the memory backend was closed', 'unavailable', 'refused');
    return this.clock.monotonic();
  }

  private listen(channel: string, listener: (wake: Wake) => void): Subscription {
    return this.open(() => this.store.channels.subscribe(channel, this, listener));
  }

  private open(subscribe: () => () => void): Subscription {
    if (this.closed) return { ready: new Promise(() => {}), close: () => {} };
    const end = subscribe();
    this.unsubscribe.add(end);
    const close = () => {
      end();
      this.unsubscribe.delete(end);
    };
    return { ready: Promise.resolve(), close };
  }

  private token(key: string, type: LockType, reserve: number): Acquired {
    return this.store.fencing.draw(key, type, reserve, this.wallMicros());
  }

  private wallMicros(): number {
    return Math.floor(this.clock.wall() * 1000);
  }

  private isFree(key: string, now: number): boolean {
    return this.store.holds.get(key, now) === undefined;
  }

  /** Whether those that stood back for waiting writers need to do so no longer. */
  private readersMayEnter(key: string, now: number): boolean {
    const { holds, writers } = this.store;
    return writers.get(key, now) === undefined && holds.get(key, now)?.state(now).mode !== 'write';
  }

  /** Tells the waiters of this type that the lock may have room; of a fair lock, the head alone. Gives how many other clients listened. */
  private wake(key: string, type: LockType, now: number): number {
    const { channels, queues } = this.store;
    if (channels.isSilent) return 0;
    if (type !== 'fair') return channels.publish(channelOf(key, type, ''), this, { kind: 'message' }, this.runtime);
    const owner = queues.get(key, now)?.head(now)?.[0];
    if (owner === undefined) return 0;
    return channels.publish(channelOf(key, type, clientOf(owner)), this, { kind: 'message', owner }, this.runtime);
  }
}
