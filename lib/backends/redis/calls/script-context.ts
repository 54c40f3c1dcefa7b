import type { RedisConnection } from '../connection/redis-connection.js';
import type { FencingTokens } from '../fencing-tokens.js';
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
