import type { RedisConnection } from '../connection/redis-connection.js';
import { errorCode, itemError, notALock, wrongType } from '../connection/redis-errors.js';
import type { ScriptCall } from '../connection/script-call.js';

/** A key that a script uses for one lock, and the type that its value must have, if there is one. */
export interface LockKey<Request> {
  readonly of: (request: Request) => string;
  readonly type: 'hash' | 'list' | 'zset' | 'string';
}

/** The lock itself, of any type but `permits`. */
export const LOCK: LockKey<{ readonly key: string }> = { of: ({ key }) => key, type: 'hash' };
/** A lock that n may hold. */
export const PERMITS: LockKey<{ readonly key: string }> = { of: ({ key }) => key, type: 'zset' };

/** The keys of all requests, in the order in which the scripts count them. */
export function keysOf<Request>(keys: readonly LockKey<Request>[], requests: readonly Request[]): string[] {
  const all: string[] = [];
  for (const request of requests) for (const key of keys) all.push(key.of(request));
  return all;
}

/**
 * Checks the answer of one request for { { error, type of each key } }, with which a script reports that it failed for
 * this request only (scripts/includes/answer-of.lua).
 *
 * @throws BackendError if it did
 */
export function refuseFailure<Request>(
  answer: unknown,
  keys: readonly LockKey<Request>[],
  request: Request,
  call: ScriptCall,
  connection: RedisConnection,
): void {
  if (!Array.isArray(answer) || !Array.isArray(answer[0])) return;
  const [message, ...types] = answer[0].map(String);
  const code = errorCode(message);
  if (code === 'READONLY') connection.scripts.leaveReplica(call);
  if (code === 'NOTALOCK') throw notALock(keys[0].of(request), connection.description, message);
  const wrong = keys.findIndex(({ type }, index) => types[index] !== type && types[index] !== 'none');
  if (code === 'WRONGTYPE' && wrong >= 0) {
    throw wrongType(keys[wrong].of(request), types[wrong], connection.description);
  }
  throw itemError(message, call, connection.description);
}
