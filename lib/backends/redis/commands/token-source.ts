import type { HeldType } from '../../lock-backend.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import { slotOf } from '../hash-slot.js';
import { fencingToken, tokenClock } from '../lock-keys.js';

/** The clock of the tokens of a lock, which is also the start value for the counter of a fenced lock. */
export function clockOf(connection: RedisConnection, key: string): string {
  return tokenClock(connection.isCluster ? slotOf(key) : undefined);
}

/** The source of the next token of a lock: the clock, or the counter of a fenced lock. */
export function tokenSource(connection: RedisConnection, key: string, type: HeldType): string {
  return type === 'fenced' ? fencingToken(key) : clockOf(connection, key);
}
