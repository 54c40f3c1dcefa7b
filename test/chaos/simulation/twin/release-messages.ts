import { HEAD_START } from '../../../../lib/backends/line-backend.js';
import { type HeldType, isReadWrite, type OwnerRef, type Removal } from '../../../../lib/backends/lock-requests.js';
import { clientOf } from '../../../../lib/backends/owner-ids.js';
import type { Runtime } from '../../../../lib/backends/runtime.js';
import type { Subscription, Wake } from '../../../../lib/backends/subscription.js';
import { channelOf, lineChannel } from './channels.js';
import { grant } from './grant-or-busy.js';
import { remaining } from './lock-record.js';
import type { MemoryStore } from './memory-store.js';
import type { GrantTerms, WaitingOwners } from './waiting-owners.js';

const WAKE: Wake = { kind: 'message' };

/** Who goes first, undefined for those outside the line, and for how many ms. */
interface Turn {
  readonly owner: string | undefined;
  readonly remaining: number;
}

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
    const { channels, fairWaiters, lines, locks } = this.store;
    if (channels.isSilent && lines.get(key, now) === undefined) return 0;
    const owner = type === 'fair' ? fairWaiters.get(key, now)?.head(now)?.[0] : undefined;
    if (owner !== undefined) return this.publish(channelOf(key, type, clientOf(owner)), { kind: 'message', owner });
    const channel = channelOf(key, isReadWrite(type) ? type : 'reentrant', '');
    const listeners = this.publish(channel);
    const isChange = locks.get(key, now) !== undefined && type !== 'permits';
    const heard = isReadWrite(type) || !channels.hasListeners(channel) ? 0 : 1;
    if (isChange || isReadWrite(type) || type === 'fair' || type === 'flight')
      this.tellLine(key, now, isChange ? undefined : heard);
    else this.serveLine(key, now, heard);
    return listeners;
  }

  /**
   * Grants a lock to the first place of its line whose client listens, or tells it: see serve-line.lua.
   *
   * @param listeners after a release, how many clients listen outside the line
   * @param asker an owner that asks for the lock, and for which it has room
   * @returns undefined if it is the asker's turn, or else who goes first and for how many ms
   */
  serveLine(key: string, now: number, listeners?: number, asker?: string): Turn | undefined {
    let isFree = this.store.locks.get(key, now) === undefined;
    while (true) {
      const line = this.store.lines.get(key, now);
      const { next, first } = this.nextPlace(key, line, now);
      if (line === undefined || first === undefined || (asker !== undefined && next === asker)) return undefined;
      const leftUntil = isFree ? leaveToOthers(line, now, listeners) : undefined;
      if (next === undefined && !(isFree && (leftUntil !== undefined || asker === undefined))) return undefined;
      const terms = next === undefined ? undefined : line.terms.get(next);
      if (next === undefined || !terms?.isHeard || leftUntil !== undefined) {
        const isOver = (line.toldUntil ?? Number.POSITIVE_INFINITY) <= now;
        if (asker !== undefined && next !== undefined && leftUntil === undefined && isOver)
          if (line.deadlineOf(asker, now) !== undefined) return undefined;
        const canAsk = isFree || next !== undefined;
        return this.tellFirst(key, line, first, canAsk, leftUntil, listeners, now, asker);
      }
      this.grantTo(key, next, terms, now);
      if (terms.type !== 'permits') return { owner: next, remaining: terms.lease };
      isFree = false;
    }
  }

  /** Tells the line of a lock that has changed or become free, and grants it to nobody. */
  private tellLine(key: string, now: number, listeners?: number): void {
    const line = this.store.lines.get(key, now);
    const { first } = this.nextPlace(key, line, now);
    if (line === undefined || first === undefined) return;
    const isFree = this.store.locks.get(key, now) === undefined;
    const leftUntil = isFree ? leaveToOthers(line, now, listeners) : undefined;
    this.tellFirst(key, line, first, isFree, leftUntil, listeners, now);
  }

  /**
   * The first place that is granted or told now, and otherwise whom to tell of a free lock. A place whose client does not
   * listen, or that owes a refresh, is passed over: see next-place.lua.
   */
  private nextPlace(
    key: string,
    line: WaitingOwners | undefined,
    now: number,
  ): { readonly next?: string; readonly first?: string } {
    const record = this.store.locks.get(key, now);
    const mode = record?.state(now).mode ?? 'free';
    const roomFor = (owner: string, permits = 0) =>
      mode === 'read' ? line?.typeOf(owner) === 'read' : record?.admits(owner, 'permits', now, permits);
    let first: string | undefined;
    let ready: string | undefined;
    let firstToFit: string | undefined;
    let readyToFit: string | undefined;
    for (const owner of line?.owners(now) ?? []) {
      const terms = line?.terms.get(owner);
      const deadline = line?.deadlineOf(owner, now) ?? now;
      const owesRefresh = terms !== undefined && 3 * (deadline - now) <= terms.keptFor;
      first ??= owner;
      if (!owesRefresh) ready ??= owner;
      if (mode === 'exclusive' || mode === 'write') break;
      if (mode !== 'free' && !roomFor(owner, terms?.permits)) continue;
      const listens = this.isHeard(key, owner);
      if (terms?.isHeard ? listens && !owesRefresh : listens) return { next: owner, first: owner };
      firstToFit ??= owner;
      if (!owesRefresh) readyToFit ??= owner;
      const interval = Math.floor((terms?.keptFor ?? 0) / 3);
      if (listens && deadline < now + interval) line?.refresh(owner, now + interval, now);
    }
    return { first: readyToFit ?? firstToFit ?? ready ?? first };
  }

  private grantTo(key: string, owner: string, { type, nonce, reserve, askedAt, lease }: GrantTerms, now: number): void {
    const { token, reserved } = this.store.fencing.next(key, type, reserve, this.wallMicros());
    const line = this.store.lines.get(key, now);
    if (line !== undefined) line.headStartUntil = line.toldUntil = undefined;
    grant(this.store, { key, type, owner }, lease, now); // ends the place
    const details = nonce && { nonce, token, reserved, after: Math.floor(now - askedAt), lease };
    const message = { kind: 'message', owner, lock: 'granted', grant: details || undefined } as const;
    this.publish(lineChannel(key, clientOf(owner)), message);
  }

  private tellFirst(
    key: string,
    line: WaitingOwners,
    first: string,
    canAsk: boolean,
    leftUntil: number | undefined,
    listeners: number | undefined,
    now: number,
    asker?: string,
  ): Turn {
    const isLeftToOthers = leftUntil !== undefined && leftUntil > now;
    const tellsNext = canAsk && !isLeftToOthers && asker === undefined;
    const lock = isLeftToOthers ? 'free' : undefined;
    const send = (owner: string, message: typeof lock) =>
      this.publish(lineChannel(key, clientOf(owner)), { kind: 'message', owner, lock: message });
    const [told, next] = toTell(line, first, tellsNext, now);
    for (const owner of told) if (owner !== asker) send(owner, lock);
    if (next !== undefined) send(next, 'free');
    if (isLeftToOthers) return { owner: undefined, remaining: remaining(leftUntil, now) };
    if (!canAsk) return { owner: first, remaining: remaining(line.deadlineOf(first, now) ?? now, now) };
    if (listeners !== undefined || line.toldUntil === undefined) line.toldUntil = now + HEAD_START;
    return { owner: first, remaining: remaining(line.toldUntil, now) };
  }

  /** Whether the client of this owner listens for messages to its place. */
  isHeard(key: string, owner: string): boolean {
    return this.store.channels.hasListeners(lineChannel(key, clientOf(owner)));
  }

  /** Notifies waiters of all types. */
  wakeAll(key: string, now: number): void {
    this.publish(channelOf(key, 'write', ''));
    this.wake(key, 'fair', now);
    if (this.store.fairWaiters.get(key, now) === undefined) return;
    const channel = channelOf(key, 'reentrant', '');
    this.publish(channel);
    this.tellLine(key, now, this.store.channels.hasListeners(channel) ? 1 : 0);
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

/**
 * Until when a free lock is left to clients that stand in no line. If any listen, every second release leaves it to them.
 *
 * @param listeners after a release, how many clients listen outside the line
 */
function leaveToOthers(line: WaitingOwners, now: number, listeners: number | undefined): number | undefined {
  const { headStartUntil } = line;
  if (listeners === undefined) return headStartUntil !== undefined && headStartUntil > now ? headStartUntil : undefined;
  line.headStartUntil = headStartUntil === undefined && listeners > 0 ? now + HEAD_START : undefined;
  return line.headStartUntil;
}

/** A place with all readers right behind a reader, and perhaps the next place. */
function toTell(
  line: WaitingOwners,
  first: string,
  tellsNext: boolean,
  now: number,
): readonly [told: readonly string[], next: string | undefined] {
  const owners = line.owners(now);
  const others = owners.slice(owners.indexOf(first) + 1);
  const end = others.findIndex((owner) => line.typeOf(first) !== 'read' || line.typeOf(owner) !== 'read');
  const readers = others.slice(0, end < 0 ? others.length : end);
  return [[first, ...readers], tellsNext && readers.length === 0 ? others[0] : undefined];
}
