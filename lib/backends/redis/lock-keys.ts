import type { HeldType } from '../lock-backend.js';
import { slotOf, tagOf } from './hash-slot.js';

/*
 * The names of the keys and channels of a lock, Redisson's and our own. All are in the lock's hash slot. Other versions
 * of this library and Java services use the same names. The scripts build some of them, too, in includes/prefixed.lua
 * and includes/suffixed.lua.
 */

export const lockChannel = (key: string): string => prefixed('redisson_lock__channel', key);
export const readWriteChannel = (key: string): string => prefixed('redisson_rwlock', key);

/** A waiter of a fair lock listens to its own channel: this prefix, followed by its owner. */
export const fairChannelPrefix = (key: string): string => `${lockChannel(key)}:`;

export const fencingToken = (key: string): string => prefixed('redisson_lock_token', key);
export const fairQueue = (key: string): string => prefixed('redisson_lock_queue', key);
export const fairTimeouts = (key: string): string => prefixed('redisson_lock_timeout', key);
export const readLease = (key: string, owner: string): string => suffixed(key, `${owner}:rwlock_timeout:1`);

/** Our waiters of a fair lock, with the time until which each counts as alive. */
export const fairHeartbeats = (key: string): string => prefixed('nestjs_redis_lock_places', key);
/** The places in the line of a lock, in order. */
export const linePlaces = (key: string): string => prefixed('nestjs_redis_lock_turns', key);
/** The channel of a client that waits in the line of a lock. */
export const lineChannel = (key: string, clientId: string): string =>
  `${prefixed('nestjs_redis_lock_turn', key)}:${clientId}`;

/** The result of a single flight: a hash. */
export const flightResult = (key: string): string => prefixed(FLIGHT_RESULT, key);
const FLIGHT_RESULT = 'nestjs_redis_lock_result';
/** Exists while somebody waits for the result of a single flight. */
export const wantedResult = (key: string): string => prefixed('nestjs_redis_lock_wanted', key);
/** When the results of a single flight were last forgotten. */
export const forgottenAt = (key: string): string => prefixed('nestjs_redis_lock_forgotten', key);

/** The waits of callers that hold locks as this owner. They do not belong to one lock, so they have their own slot. */
export const waitsOf = (owner: string): string => `nestjs_redis_lock_waits:{${owner}}`;

/** The channel that notifies a client of forced releases of its owners. */
export const clientChannel = (clientId: string): string => `nestjs_redis_lock_client:{${clientId}}`;
/** The record that a client writes about itself: a hash. It has the name of the client's channel. */
export const clientRecord = clientChannel;
/** The clients that have a record. */
export const clientList = 'nestjs_redis_lock_clients';

export function isClientChannel(channel: string): boolean {
  return channel.startsWith('nestjs_redis_lock_client:');
}

/** The leases of a semaphore's permits, if they have any. */
export const permitLeases = (key: string): string => suffixed(key, 'timeout');
export const semaphoreChannel = (key: string): string => prefixed('redisson_sc', key);
/** A hash with the type of a semaphore or latch and its total, for people and tools. */
export const counterNote = (key: string): string => prefixed(COUNTER_NOTE, key);
const COUNTER_NOTE = 'nestjs_redis_lock_counter';
/**
 * A pattern for the notes of semaphores and latches, and for results. It also fits a few other keys of this library.
 */
export const ALL_NOTES = 'nestjs_redis_lock_[cr][oe][us]*';

/** The semaphore or latch, or the single flight, that a note or a result belongs to. */
export function notedKey(note: string): { readonly key: string; readonly isResult: boolean } | undefined {
  const prefix = [COUNTER_NOTE, FLIGHT_RESULT].find((prefix) => note.startsWith(`${prefix}:`));
  if (prefix === undefined) return undefined;
  const name = note.slice(prefix.length + 1);
  const [, plain] = /^\{([^{]*)\}$/s.exec(name) ?? [];
  return { key: plain ?? name, isResult: prefix === FLIGHT_RESULT };
}

/** Whether it is a key of this library, or the queue of a fair lock, that is not a lock. With an empty prefix, such keys appear among the locks. */
export function isBesideLocks(key: string): boolean {
  return key.startsWith('nestjs_redis_lock_') || key.startsWith('redisson_lock_timeout:');
}

/** The name is always in braces, even if it contains braces. */
export const latchChannel = (key: string): string => `redisson_countdownlatch__channel__{${key}}`;
/** The latest request of a session, which may be sent twice. */
export const latestRequest = (key: string, session: string): string =>
  `${prefixed('nestjs_redis_lock_request', key)}:${session}`;

/**
 * The clock of the tokens of a lock, which is also the start value for the counter of a fenced lock. There is one for
 * all locks, or in a cluster one for each slot.
 */
export function tokenClock({ isCluster }: Servers, key: string): string {
  return isCluster ? `nestjs_redis_lock_clock:{${tagOf(slotOf(key))}}` : 'nestjs_redis_lock_clock';
}

/** The source of the next token of a lock: the clock, or the counter of a fenced lock. */
export function tokenSource(servers: Servers, key: string, type: HeldType): string {
  return type === 'fenced' ? fencingToken(key) : tokenClock(servers, key);
}

/** Of a connection: whether its keys are spread over slots. */
interface Servers {
  readonly isCluster: boolean;
}

function prefixed(prefix: string, key: string): string {
  return key.includes('{') ? `${prefix}:${key}` : `${prefix}:{${key}}`;
}

function suffixed(key: string, suffix: string): string {
  return key.includes('{') ? `${key}:${suffix}` : `{${key}}:${suffix}`;
}
