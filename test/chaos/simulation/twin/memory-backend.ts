import { BackendError } from '../../../../lib/backends/backend-error.js';
import { InProcessWaits } from '../../../../lib/backends/in-process-waits.js';
import { hasLine, type LineBackend } from '../../../../lib/backends/line-backend.js';
import type { BackendHealth, LockBackend } from '../../../../lib/backends/lock-backend.js';
import {
  type AcquireAllReply,
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
  type AdoptReply,
  type AdoptRequest,
  type Busy,
  type ExpectedHolders,
  type HeldType,
  isReadWrite,
  type LockState,
  type NewestCall,
  type OwnerRef,
  type ReleaseReply,
  type Removal,
  type RenewRequest,
  type TransferRequest,
  type WaiterRef,
} from '../../../../lib/backends/lock-requests.js';
import { clientOf, numberOf, ticketOwner } from '../../../../lib/backends/owner-ids.js';
import { printsAs } from '../../../../lib/backends/prints-as.js';
import type { MemberReleaseRequest } from '../../../../lib/backends/quorum/quorum-member.js';
import type { Runtime } from '../../../../lib/backends/runtime.js';
import type { Subscription, Wake } from '../../../../lib/backends/subscription.js';
import type { SynchronizerBackend } from '../../../../lib/backends/synchronizer-backend.js';
import { channelOf, lineChannel } from './channels.js';
import { findBusy, grant } from './grant-or-busy.js';
import { PermitsRecord } from './lock-record.js';
import { MemoryDirectory } from './memory-directory.js';
import { MemoryFlights } from './memory-flights.js';
import { type MemoryStore, processStore } from './memory-store.js';
import { MemorySynchronizers } from './memory-synchronizers.js';
import { ReleaseMessages } from './release-messages.js';
import { addWaiter, refreshWaiter, removeWaiter } from './waiting-owners.js';

/** For how many times the waiterTimeout it is known which call of a line is the newest. */
const NEWEST_KEPT = 10;

/** @publicApi */
export interface MemoryBackendOptions {
  /** Usually `nodeRuntime`. Tests can control time with a runtime of their own. */
  readonly runtime: Runtime;
  /** Default: a store that all backends of this process share. */
  readonly store?: MemoryStore;
}

/**
 * Locks inside one process that behave as on Redis, for tests, demos and simulations. Several
 * backends on one store behave like several processes on one Redis.
 *
 * It starts no timers: expired leases and waiters are removed when they are read, or swept by later acquisitions. Its
 * methods never block and never fail, except that all of them reject once it is closed.
 *
 * ```ts
 * const locks = createLockService({ backend: new MemoryBackend({ runtime: nodeRuntime, store: new MemoryStore() }) });
 * ```
 *
 * @throws BackendError from every method after {@link close}
 * @publicApi
 */
export class MemoryBackend implements LockBackend {
  readonly description = 'memory';
  readonly synchronizers: SynchronizerBackend;
  readonly flights: MemoryFlights;
  readonly waits: InProcessWaits;
  readonly line: LineBackend;
  readonly directory: MemoryDirectory;
  private readonly store: MemoryStore;
  private readonly clock: Pick<Runtime, 'monotonic' | 'wall'>;
  private readonly messages: ReleaseMessages;
  private closed = false;

  constructor({ runtime, store = processStore() }: MemoryBackendOptions) {
    this.store = store;
    this.clock = store.clock ?? runtime;
    this.messages = new ReleaseMessages(store, runtime, () => this.wallMicros());
    const now = () => this.now();
    this.synchronizers = new MemorySynchronizers(store, this.messages, now);
    const clocks = { now, monotonic: () => runtime.monotonic(), wallMicros: () => this.wallMicros() };
    this.flights = new MemoryFlights(store, this.messages, clocks, (key) => this.refuseCounter(key));
    this.line = {
      listen: (key, clientId, listener) => this.messages.subscribe(lineChannel(key, clientId), listener),
      begun: () => {},
    };
    this.directory = new MemoryDirectory(store, now);
    this.waits = new InProcessWaits(
      store.waits,
      now,
      () => runtime.monotonic(),
      async (key) => this.holders(key),
    );
  }

  async ping(): Promise<BackendHealth> {
    this.now();
    return { listening: true };
  }

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const now = this.now();
    this.refuseCounter(request.key);
    const newest = this.enterAsNewest(request, now);
    if (newest === 'superseded')
      return { acquired: false, remaining: 0, holder: this.holders(request.key)[0], superseded: true };
    const { key, owner } = request;
    const busy = this.findBusy(request, now);
    if (busy !== undefined) {
      const kept = addWaiter(this.store, request, this.messages.isHeard(key, owner), now);
      const reply = newest === undefined ? busy : { ...busy, newest };
      return kept === 'longer' ? { ...reply, keptLonger: true } : reply;
    }
    grant(this.store, request, request.leaseTime, now);
    const acquired = this.token(request.key, request.type, request.reserve);
    return newest === undefined ? acquired : { ...acquired, newest };
  }

  /**
   * Takes the place of the newest call before this one: see enter-as-newest.lua.
   *
   * @returns undefined if no other call is superseded, or it was granted the lock before a later call came
   */
  private enterAsNewest(request: AcquireRequest, now: number): NewestCall | 'superseded' | undefined {
    const { key, type, owner, waiterTimeout, newest: call } = request;
    if (call === undefined || waiterTimeout === 0) return undefined;
    const { newest, lines, locks } = this.store;
    const until = now + waiterTimeout * NEWEST_KEPT;
    const last = newest.get(key, now);
    if (last?.owner === owner) {
      newest.set(key, { ...last, until }, now);
      return { superseded: last.superseded, order: last.order };
    }
    const { owner: lastOwner, order: lastOrder = 0, numbers = new Map<string, number>() } = last ?? {};
    const client = clientOf(owner);
    if (numberOf(owner) <= (numbers.get(client) ?? -1) || (call.order !== undefined && call.order < lastOrder))
      return locks.get(key, now)?.isHeldBy(owner, type, now) ? undefined : 'superseded';
    const isReplaced =
      lastOwner !== undefined && lines.get(key, now)?.replace(lastOwner, owner, now + waiterTimeout, now);
    if (isReplaced) this.messages.publish(lineChannel(key, clientOf(lastOwner)), { kind: 'message', owner: lastOwner });
    let { superseded } = call;
    if (last !== undefined && call.order === lastOrder) superseded = last.superseded;
    else if (last !== undefined && isReplaced) superseded += last.superseded + 1;
    const order = call.order ?? Math.max(now * 1_000, lastOrder + 1);
    numbers.set(client, numberOf(owner));
    newest.set(key, { owner, superseded, order, numbers, until }, now);
    return { superseded, order };
  }

  /** An acquisition that enters the line leaves a free lock to those whose turn it is. */
  private findBusy(request: AcquireRequest, now: number): Busy | undefined {
    const busy = findBusy(this.store, request, now);
    const { key, type, owner, waiterTimeout } = request;
    if (waiterTimeout === 0 || !hasLine(type)) return busy;
    const { locks, lines } = this.store;
    const record = locks.get(key, now);
    const isSettled = isReadWrite(type)
      ? busy === undefined || record !== undefined
      : busy !== undefined || record?.isHeldBy(owner, type, now);
    if (isSettled) return busy;
    const others = this.messages.serveLine(key, now, undefined, owner);
    const stillBusy = locks.get(key, now) === undefined ? undefined : findBusy(this.store, request, now);
    if (stillBusy !== undefined) return stillBusy;
    if (others !== undefined) return { acquired: false, holder: others.owner, remaining: others.remaining };
    const line = lines.get(key, now);
    if (line !== undefined) line.toldUntil = undefined;
    return undefined;
  }

  canAcquireTogether(): boolean {
    return true;
  }

  async acquireAll(requests: readonly AcquireRequest[]): Promise<AcquireAllReply> {
    const now = this.now();
    for (const [index, request] of requests.entries()) {
      this.refuseCounter(request.key);
      const busy = findBusy(this.store, request, now);
      if (busy !== undefined) return { ...busy, index };
    }
    for (const request of requests) grant(this.store, request, request.leaseTime, now);
    return { acquired: true, tokens: requests.map(({ key, type }) => this.token(key, type, 0).token) };
  }

  async release(request: MemberReleaseRequest): Promise<ReleaseReply> {
    const now = this.now();
    const { key, type, owner, quietly } = request;
    const record = this.store.locks.get(key, now);
    if (!record?.isHeldBy(owner, type, now))
      return { released: false, listeners: 0, published: false, resent: false, at: now };
    const end = type === 'read' ? record.awaited(now)[1] : 0;
    record.remove(owner, type);
    const isFree = record.isEmpty(now);
    if (isFree) this.store.locks.delete(key);
    // When one of several readers releases, no waiter can enter. When a writer keeps its read lock, readers can, and so can
    // the next holder when a permit is given back.
    const published = !quietly && (isFree || type === 'write' || type === 'permits');
    // The lock may now expire earlier. Without a message, waiters would sleep until its former end.
    if (type === 'read' && !quietly && !isFree && record.awaited(now)[1] < end) this.messages.wake(key, type, now);
    return { released: true, listeners: published ? this.messages.wake(key, type, now) : 0, published, resent: false };
  }

  async transfer(request: TransferRequest): Promise<Acquired | undefined> {
    const now = this.now();
    const { key, type, from, to, leaseTime } = request;
    const record = this.store.locks.get(key, now);
    if (record === undefined) return undefined;
    const [, end] = record.awaited(now);
    if (record.isHeldBy(from, type, now)) {
      record.remove(from, type);
      if (!record.isEmpty(now) && !record.admits(to, type, now, Number.POSITIVE_INFINITY)) {
        // The writer keeps its read lock: its write lock ends, but no other writer can enter.
        this.messages.wake(key, type, now);
        return undefined;
      }
    } else if (!record.isHeldBy(to, type, now)) {
      return undefined;
    }
    grant(this.store, { key, type, owner: to }, leaseTime, now);
    if (now + leaseTime < end) this.messages.wake(key, type, now);
    return this.token(key, type, request.reserve);
  }

  async adopt({ key, type, clientId, secret, to, leaseTime }: AdoptRequest): Promise<AdoptReply> {
    const now = this.now();
    this.refuseCounter(key);
    const from = ticketOwner(clientId, secret);
    const record = this.store.locks.get(key, now);
    if (record?.isHeldBy(from, type, now))
      return (await this.transfer({ key, type, from, to, leaseTime, reserve: 0 })) as Acquired;
    if (!record?.isHeldBy(to, type, now)) return { acquired: false, holder: this.holders(key)[0] };
    const [, end] = record.awaited(now);
    record.set(to, type, Math.max(end, now + leaseTime), now);
    return this.token(key, type, 0);
  }

  async renew(request: RenewRequest): Promise<boolean> {
    const now = this.now();
    const { key, type, owner, leaseTime } = request;
    const record = this.store.locks.get(key, now);
    if (!record?.isHeldBy(owner, type, now)) return false;
    const [, end] = record.awaited(now);
    record.set(owner, type, now + leaseTime, now);
    if (record.awaited(now)[1] < end) this.messages.wake(key, type, now);
    return true;
  }

  async raiseToken(key: string, type: HeldType, token: number): Promise<void> {
    this.now();
    this.store.fencing.raise(key, type, token, this.wallMicros());
  }

  async refreshWaiters(
    waiters: readonly WaiterRef[],
    waiterTimeout: number,
    keptLonger?: () => void,
  ): Promise<readonly boolean[]> {
    const now = this.now();
    const kept = waiters.map((waiter) => {
      const isHeard = this.messages.isHeard(waiter.key, waiter.owner);
      return refreshWaiter(this.store, waiter, waiterTimeout, isHeard, now);
    });
    if (kept.length > 0 && kept.every((time) => time === 'longer')) keptLonger?.();
    for (const { key } of waiters) {
      const newest = this.store.newest.get(key, now);
      if (newest !== undefined)
        this.store.newest.set(key, { ...newest, until: now + waiterTimeout * NEWEST_KEPT }, now);
    }
    // The waiter that had been woken may have died. Then the next one has to be woken, or waiters of other types.
    const fairKeys = new Set(waiters.filter(({ type }) => type === 'fair').map(({ key }) => key));
    for (const key of fairKeys) this.messages.wakeIfFree(key, 'fair', now);
    for (const { key, type } of waiters) if (hasLine(type)) this.messages.serveLine(key, now);
    return kept.map((time) => time !== undefined);
  }

  async removeWaiter(waiter: OwnerRef): Promise<void> {
    const now = this.now();
    const { key, type, owner } = waiter;
    const { fairWaiters, lines } = this.store;
    const wrote = hasLine(type) && lines.get(key, now)?.typeOf(owner) === 'write';
    const wasHead = (hasLine(type) ? lines : fairWaiters).get(key, now)?.head(now)?.[0] === owner;
    if (!removeWaiter(this.store, waiter, now)) {
      // The lock may have been granted to the place meanwhile.
      if (hasLine(type) && !isReadWrite(type)) await this.release(waiter);
      return;
    }
    if (type === 'fair' && wasHead) this.messages.wakeIfFree(key, type, now);
    if (wrote) this.messages.wakeReaders(waiter, now);
    if (hasLine(type)) this.messages.serveLine(key, now);
  }

  async forceRelease(key: string, expected?: ExpectedHolders): Promise<readonly string[]> {
    const now = this.now();
    this.refuseCounter(key);
    const { locks, fencing } = this.store;
    const record = locks.get(key, now);
    if (record === undefined || record.isEmpty(now)) return [];
    const last = expected?.token === undefined ? undefined : fencing.lastOf(key, this.wallMicros());
    if (last !== undefined && last !== expected?.token) return [];
    const holders = record.state(now).owners.map(({ owner }) => owner);
    const owners = expected === undefined ? holders : holders.filter((owner) => expected.owners.includes(owner));
    for (const owner of owners) record.evict(owner);
    const isFree = record.isEmpty(now);
    if (isFree) locks.delete(key);
    if (owners.length > 0 && (isFree || record instanceof PermitsRecord)) this.messages.wakeAll(key, now);
    this.messages.notifyRemoved(key, owners);
    return owners;
  }

  async inspect(key: string): Promise<LockState> {
    const now = this.now();
    this.refuseCounter(key);
    const state = this.store.locks.get(key, now)?.state(now) ?? { mode: 'free', owners: [] };
    return {
      ...state,
      queue: [this.store.fairWaiters, this.store.lines].flatMap((waiters) => waiters.get(key, now)?.owners(now) ?? []),
      token: this.store.fencing.lastOf(key, this.wallMicros()),
    };
  }

  subscribe(key: string, type: HeldType, clientId: string, listener: (wake: Wake) => void): Subscription {
    return this.messages.subscribe(channelOf(key, type, clientId), listener);
  }

  listenToClient(clientId: string, listener: (removal: Removal) => void): Subscription {
    return this.messages.subscribeClient(clientId, listener);
  }

  /**
   * Ends the subscriptions of this backend, and rejects later calls. Locks stay until another backend releases them or
   * their leases end.
   */
  async close(): Promise<void> {
    this.closed = true;
    this.messages.close();
  }

  /** @throws BackendError when the key is a semaphore or latch, which Redis refuses as well */
  private refuseCounter(key: string): void {
    if (!this.store.synchronizers.counters.has(key)) return;
    throw new BackendError(`memory: ${key} is a semaphore or latch; choose another lock name`, 'key', 'refused');
  }

  private holders(key: string): readonly string[] {
    const now = this.now();
    return (
      this.store.locks
        .get(key, now)
        ?.state(now)
        .owners.map(({ owner }) => owner) ?? []
    );
  }

  private now(): number {
    if (this.closed) throw new BackendError('the memory backend was closed', 'unavailable', 'refused');
    return this.clock.monotonic();
  }

  private token(key: string, type: HeldType, reserve: number): Acquired {
    return this.store.fencing.next(key, type, reserve, this.wallMicros());
  }

  private wallMicros(): number {
    return Math.floor(this.clock.wall() * 1000);
  }
}

printsAs(MemoryBackend, ({ description }) => ({ description }));
