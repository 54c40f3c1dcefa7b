import type { LockBackend } from '../backends/lock-backend.js';
import { QuorumBackend } from '../backends/quorum/quorum-backend.js';
import { MemoryBackend } from '../backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../backends/redis/in-process/memory-store.js';
import { RedisBackend } from '../backends/redis/redis-backend.js';
import type { Runtime } from '../backends/runtime.js';
import { LockConfigurationError } from '../engine/errors.js';
import type { LockLogger } from '../engine/events/lock-logger.js';
import type { Milliseconds } from '../engine/terms/duration.js';
import type { Connection, RedisLockOptions } from './redis-lock-options.js';

/** What a backend shares with the engine above it. */
export interface BackendEnvironment {
  readonly clientId: string;
  readonly keyPrefix: string;
  readonly logger: LockLogger;
  readonly runtime: Runtime;
  readonly commandTimeout: Milliseconds;
  readonly onError: (error: unknown) => void;
  readonly onWarning: (message: string) => void;
  /** Called when a connection has reached its server. */
  readonly onConnected: (description: string, server: string) => void;
  /** Called when a connection has reached its server, if its user may lack rights. */
  readonly onLimitedUser: () => void;
}

/** The longest time that a command waits for a quorum node that is down, in milliseconds. */
const LONGEST_NODE_TIMEOUT = 500;

let hasWarnedOfMemory = false;

/**
 * Creates the backend for these options. It connects immediately, so check all options first.
 *
 * @throws LockConfigurationError when the options do not describe a usable connection
 */
export function createBackend(options: RedisLockOptions, environment: BackendEnvironment): LockBackend {
  const { connection, backend, quorum } = options;
  if (backend === 'memory') return memoryBackend(environment);
  if (backend !== undefined) return backend;
  if (quorum !== undefined) return quorumBackend(quorum, options, environment);
  return redisBackend(connection as Connection, 'connection', options, environment);
}

function memoryBackend({ runtime, logger }: BackendEnvironment): LockBackend {
  if (!hasWarnedOfMemory)
    logger.warn(
      "backend: 'memory' keeps locks inside this process, so they have no effect on other processes. Use a connection in production",
    );
  hasWarnedOfMemory = true;
  return new MemoryBackend({ runtime, store: new MemoryStore() });
}

function quorumBackend(
  connections: readonly Connection[],
  options: RedisLockOptions,
  environment: BackendEnvironment,
): LockBackend {
  const nodes: RedisBackend[] = [];
  try {
    for (const [n, connection] of connections.entries())
      nodes.push(redisBackend(connection, `quorum[${n}]`, options, environment));
    refuseSameServer(nodes);
  } catch (error) {
    for (const node of nodes) node.close().catch(() => {});
    throw error;
  }
  const { runtime, commandTimeout } = environment;
  return new QuorumBackend({ nodes, runtime, nodeTimeout: Math.min(LONGEST_NODE_TIMEOUT, commandTimeout) });
}

/** Compares only the options, so one server with two host names is not detected. */
function refuseSameServer(nodes: readonly LockBackend[]): void {
  const servers = nodes.map(({ description }) => description.replace(/\/\d+$/, ''));
  const ids = servers.map((server) => server.replace(/ (localhost|\[?::1\]?):/, ' 127.0.0.1:'));
  for (const [n, id] of ids.entries()) {
    const first = ids.indexOf(id);
    if (first < n)
      throw new LockConfigurationError(
        `RedisLockModule: quorum[${n}] is the same server as quorum[${first}] (${servers[n]}). Each node must be an independent master. Otherwise one crash loses two votes`,
      );
  }
}

/** @param option the option's name, as used in error messages */
function redisBackend(
  connection: Connection,
  option: string,
  { minReplicas = 0, shardedPubSub = 'auto' }: RedisLockOptions,
  environment: BackendEnvironment,
): RedisBackend {
  try {
    const backend: RedisBackend = new RedisBackend({
      ...environment,
      connection,
      minReplicas,
      shardedPubSub,
      onConnected: (server) => environment.onConnected(backend.description, server),
    });
    return backend;
  } catch (cause) {
    throw new LockConfigurationError(`RedisLockModule: ${option}: ${(cause as Error).message}`, { cause });
  }
}
