import type { Runtime } from '../runtime.js';
import type { Connection } from './links/connection.js';

export interface RedisBackendOptions {
  readonly connection: Connection;
  readonly runtime: Runtime;
  /** The `<clientId>` of this process's owners. */
  readonly clientId: string;
  /** Milliseconds within which every call is answered. */
  readonly commandTimeout: number;
  readonly shardedPubSub: 'auto' | 'on' | 'off';
  /** An acquisition counts only when this many replicas have it. 0: replicas are not asked. */
  readonly minReplicas: number;
  /** Milliseconds to wait for replicas. */
  readonly replicaTimeout: number;
  /** Receives errors that no call fails with, such as those of broken connections and of listeners. */
  readonly onError: (error: unknown) => void;
  /** Called once, when a server has answered for the first time, with its name and version: `Redis 7.4.1`. */
  readonly onConnected?: ((server: string) => void) | undefined;
  /** Receives a warning, at most once, about a server configuration that makes locks unsafe. */
  readonly onWarning?: (message: string) => void;
}
