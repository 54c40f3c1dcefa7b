import type { RedisConnection } from '../connection/redis-connection.js';
import type { FencingTokens } from '../fencing-tokens.js';
import { slotOf } from '../hash-slot.js';
import { tokenClock } from '../lock-keys.js';
import type { PublishMode } from '../pubsub/publish-mode.js';
import type { ReplicaCheck } from '../replica-check.js';
import type { SingleCalls } from './single-calls.js';

/** What the commands of a backend share. */
export interface ScriptContext {
  readonly connection: RedisConnection;
  readonly tokens: FencingTokens;
  readonly publishMode: PublishMode;
  readonly single: SingleCalls;
  /** Undefined: acquisitions count without replicas. */
  readonly replicaCheck: ReplicaCheck | undefined;
}

/** The clock that the token of a lock comes from. */
export function clockOf(connection: RedisConnection, key: string): string {
  return tokenClock(connection.isCluster ? slotOf(key) : undefined);
}
