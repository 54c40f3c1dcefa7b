import type { HeldType } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import type { LeaseTerms } from '../terms/lock-options.js';
import type { EventHub } from './event-hub.js';
import type { LockEvent, OwnerEvent } from './lock-events.js';

/** What emits these events. */
export interface Announcer {
  readonly events: EventHub;
  readonly runtime: Runtime;
}

/** A lock that is held. */
interface AnnouncedLock {
  readonly name: string;
  readonly type: HeldType;
  readonly owner: string;
  readonly token: number;
  /** Since when this process has had it, on the monotonic clock. */
  readonly since: number;
  readonly shares: readonly { readonly terms: LeaseTerms }[];
}

interface AnnouncedLease {
  readonly locks: readonly AnnouncedLock[];
  readonly terms: LeaseTerms;
}

/** When each lease was granted. Filled only while there is a listener that needs lease durations. */
const given = new WeakMap<AnnouncedLease, number>();

/** The start time of an acquisition, or undefined if no listener needs its duration. */
export function startTime({ events, runtime }: Announcer): number | undefined {
  return events.timed ? runtime.monotonic() : undefined;
}

/**
 * Emits `acquired` for each lock that no other lease already holds.
 *
 * @param ticketOwner the former owner of a detached lock that was adopted
 */
export function announceAcquired(
  { events, runtime }: Announcer,
  lease: AnnouncedLease,
  started: number | undefined,
  ticketOwner?: string,
): void {
  if (!events.timed) return;
  const now = runtime.monotonic();
  given.set(lease, now);
  const waited = started === undefined ? 0 : now - started;
  for (const lock of lease.locks)
    if (lock.shares.length === 1)
      events.emit('acquired', {
        ...eventOf(lock),
        fencingToken: lock.token,
        waited,
        ...(ticketOwner && { ticketOwner }),
      });
}

/**
 * Emits `released`.
 *
 * @param freed the locks that no other lease shared, without those that `holdAtLeast` keeps
 */
export function announceReleased(
  { events, runtime }: Announcer,
  lease: AnnouncedLease,
  freed: readonly AnnouncedLock[],
  confirmed: boolean,
): void {
  const since = given.get(lease);
  const held = since === undefined ? undefined : runtime.monotonic() - since;
  for (const lock of freed)
    events.emit('released', { ...purposeOf(lock, lease.terms), owner: lock.owner, held, confirmed });
}

/** Emits `detached`. */
export function announceDetached(
  { events, runtime }: Announcer,
  lease: AnnouncedLease,
  { owner: ticketOwner, leaseTime }: { readonly owner: string; readonly leaseTime: number },
): void {
  if (!events.hasListener('detached')) return;
  const since = given.get(lease);
  const held = since === undefined ? undefined : runtime.monotonic() - since;
  const [lock] = lease.locks;
  events.emit('detached', { ...purposeOf(lock, lease.terms), owner: lock.owner, held, ticketOwner, leaseTime });
}

/**
 * Emits `lost`.
 *
 * @param name the names of all locks of the lease
 */
export function announceLost(
  { events, runtime }: Announcer,
  lock: AnnouncedLock,
  error: Error,
  terms: LeaseTerms | undefined,
  name: string = lock.name,
): void {
  const held = runtime.monotonic() - lock.since;
  events.emit('lost', { ...purposeOf(lock, terms), name, owner: lock.owner, held, error });
}

export function announceRenewalFailed(
  events: EventHub,
  held: AnnouncedLock,
  remainingTime: number,
  error: Error,
): void {
  if (events.hasListener('renewalFailed')) events.emit('renewalFailed', { ...eventOf(held), remainingTime, error });
}

/** The part of an event that describes a held lock. */
export function eventOf(held: AnnouncedLock): OwnerEvent {
  return { ...purposeOf(held, held.shares[0]?.terms), owner: held.owner };
}

function purposeOf(
  { name, type }: Pick<AnnouncedLock, 'name' | 'type'>,
  { group = '', method = '' }: Partial<LockEvent> = {},
): LockEvent {
  return { name, type, group, method };
}
