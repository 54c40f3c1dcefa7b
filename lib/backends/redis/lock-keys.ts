import type { LockType } from '../lock-backend.js';
import { tagOf } from './hash-slot.js';

/** Redisson's names of what belongs to a lock, and ours beside them: all in the lock's hash slot. The scripts' are in includes/names.lua. */
export const lockChannel = (key: string): string => prefixed('redisson_lock__channel', key);
export const readWriteChannel = (key: string): string => prefixed('redisson_rwlock', key);

/** A waiter of a fair lock listens to its own channel: this, and its owner. */
export const fairChannelPrefix = (key: string): string => `${lockChannel(key)}:`;

export const fencingToken = (key: string): string => prefixed('redisson_lock_token', key);
export const fairQueue = (key: string): string => prefixed('redisson_lock_queue', key);
export const fairTimeouts = (key: string): string => prefixed('redisson_lock_timeout', key);
export const readLease = (key: string, owner: string): string => suffixed(key, `${owner}:rwlock_timeout:1`);

/** Waiters of a fair lock that keep their places fresh, with the time at which each place lapses. */
export const fairPlaces = (key: string): string => prefixed('nestjs_redis_lock_places', key);
/** Writers that wait, with the time at which each announcement lapses. */
export const announcedWriters = (key: string): string => prefixed('nestjs_redis_lock_writers', key);

/** Where a client hears that its owners were removed by force. */
export const clientChannel = (clientId: string): string => `nestjs_redis_lock_client:{${clientId}}`;

export function isClientChannel(channel: string): boolean {
  return channel.startsWith('nestjs_redis_lock_client:');
}

/** How many were woken in vain since the lock has its holder. */
export const line = (key: string): string => prefixed('nestjs_redis_lock_line', key);

/** The leases of the permits of a semaphore, where they have any. */
export const permitLeases = (key: string): string => suffixed(key, 'timeout');
export const semaphoreChannel = (key: string): string => prefixed('redisson_sc', key);
/** With braces around every name, also one that has some. */
export const latchChannel = (key: string): string => `redisson_countdownlatch__channel__{${key}}`;
/** The latest request of a client, which may be sent twice. */
export const latestRequest = (key: string, lane: string): string =>
  `${prefixed('nestjs_redis_lock_request', key)}:${lane}`;

/** The clock that fencing tokens come from: one for all locks; in a cluster, one for each slot. */
export function tokenClock(slot: number | undefined): string {
  return slot === undefined ? 'nestjs_redis_lock_clock' : `nestjs_redis_lock_clock:{${tagOf(slot)}}`;
}

export function isReadWrite(type: LockType): type is 'read' | 'write' {
  return type === 'read' || type === 'write';
}

function prefixed(prefix: string, key: string): string {
  return key.includes('{') ? `${prefix}:${key}` : `${prefix}:{${key}}`;
}

function suffixed(key: string, suffix: string): string {
  return key.includes('{') ? `${key}:${suffix}` : `{${key}}:${suffix}`;
}
