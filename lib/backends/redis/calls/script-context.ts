import type { OwnerRef } from '../../lock-backend.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import type { ScriptCall } from '../connection/script-call.js';
import type { HighestToken } from '../highest-token.js';
import type { PublishMode } from '../pubsub/publish-mode.js';
import type { SingleCalls } from './single-calls.js';

/** Makes acquisitions succeed only when enough replicas have confirmed them. */
export interface ReplicaConfirmation {
  /**
   * Resolves when enough replicas have what `call` wrote.
   *
   * @param owners the owners for which `call` acquired locks. If too few replicas have them, they are released
   * @throws BackendError when too few have it in time, or the connection broke
   */
  confirm(call: Pick<ScriptCall, 'socket'>, owners: readonly OwnerRef[]): Promise<void>;
}

/** What the commands of a backend share. */
export interface ScriptContext {
  readonly connection: RedisConnection;
  readonly highestToken: HighestToken;
  readonly publishMode: PublishMode;
  readonly single: SingleCalls;
  /** For what clients write about themselves and for each other: see {@link Subject}. */
  readonly notes: SingleCalls;
  /** Undefined when acquisitions count without being confirmed by replicas. */
  readonly replicaCheck: ReplicaConfirmation | undefined;
  /** See `RedisBackendOptions`. */
  readonly standby: boolean;
}
