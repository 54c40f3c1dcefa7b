import type { HeldType } from '../../lock-backend.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import { slotOf } from '../hash-slot.js';
import { fencingToken, tokenClock } from '../lock-keys.js';

/** The clock that the tokens of a lock come from, and that the counter of a fenced lock starts from. */
export function clockOf(connection: RedisConnection, key: string): string {
  return tokenClock(connection.isCluster ? slotOf(key) : undefined);
}

/** Where the next token of a lock comes from: for a fenced lock that exists, its own counter. */
export function tokenSource(connection: RedisConnection, key: string, type: HeldType): string {
  return type === 'fenced' ? fencingToken(key) : clockOf(connection, key);
}
