import type { LockBackend } from '../backends/lock-backend.js';
import { MemoryBackend } from '../backends/memory/memory-backend.js';
import { QuorumBackend } from '../backends/quorum/quorum-backend.js';
import { RedisBackend } from '../backends/redis/redis-backend.js';
import type { Runtime } from '../backends/runtime.js';
import {
  type Duration,
  FOREVER,
  MAX_LEASE_TIME,
  MAX_TIMEOUT,
  MIN_LEASE_TIME,
  type Milliseconds,
  toMilliseconds,
  toWaitTime,
} from '../engine/duration.js';
import { LockConfigurationError } from '../engine/errors.js';
import type { LockLogger } from '../engine/events.js';
import { HarmlessLogger } from '../engine/harmless-logger.js';
import { LockEngine } from '../engine/lock-engine.js';
import { bracesPair } from '../engine/lock-name.js';
import { nodeRuntime } from '../engine/node-runtime.js';
import { LockService } from './lock-service.js';
import type { Connection, RedisLockOptions } from './redis-lock-options.js';

const OPTION_NAMES = [
  'connection',
  'backend',
  'quorum',
  'name',
  'isGlobal',
  'keyPrefix',
  'watchdogTimeout',
  'fairWaitTimeout',
  'waitTime',
  'shutdownTimeout',
  'onLost',
  'minReplicas',
  'replicaTimeout',
  'commandTimeout',
  'shardedPubSub',
  'logger',
] satisfies (keyof RedisLockOptions)[];

const consoleLogger: LockLogger = {
  warn: (message) => console.warn(`[RedisLock] ${message}`),
  error: (message) => console.error(`[RedisLock] ${message}`),
};

/** A node of a quorum that is down costs so many milliseconds at most, where the answer of a majority needs it. */
const LONGEST_NODE_TIMEOUT = 500;

let warnedOfMemory = false;

/**
 * Makes the lock service, with or without NestJS. It connects at the first use; end it by `close()`.
 *
 * ```ts
 * const locks = createLockService({ connection: 'redis://localhost:6379' });
 * await locks.withLock('report', () => build());
 * await locks.close();
 * ```
 *
 * @throws LockConfigurationError naming the option that is missing or wrong
 * @publicApi
 */
export function createLockService(options: RedisLockOptions): LockService {
  checkShape(options);
  const duration = (option: keyof RedisLockOptions, otherwise: number, least = 0, most = MAX_TIMEOUT): Milliseconds =>
    toMilliseconds((options[option] as Duration | undefined) ?? otherwise, `RedisLockModule: ${option}`, least, most);
  const runtime = nodeRuntime;
  const logger = new HarmlessLogger(options.logger ?? consoleLogger);
  const clientId = runtime.uuid();
  const commandTimeout = duration('commandTimeout', 2_000, 10);
  const settings = {
    commandTimeout,
    clientId,
    logger,
    runtime,
    keyPrefix: options.keyPrefix ?? 'lock:',
    watchdogTimeout: duration('watchdogTimeout', 30_000, MIN_LEASE_TIME, MAX_LEASE_TIME),
    fairWaitTimeout: duration('fairWaitTimeout', 5_000, MIN_LEASE_TIME),
    waitTime: toWaitTime(options.waitTime ?? FOREVER, 'RedisLockModule: waitTime'),
    shutdownTimeout: duration('shutdownTimeout', 10_000),
    onLost: options.onLost ?? 'throw',
  };
  let engine: LockEngine | undefined;
  // After all options were checked: a connection that nobody gets would go on reconnecting for ever.
  const backend = makeBackend(options, {
    clientId,
    logger,
    runtime,
    commandTimeout,
    replicaTimeout: duration('replicaTimeout', 1_000, 1),
    onError: oncePerReason((error) => engine?.context.events.emit('error', error)),
    onWarning: (message) => engine?.context.events.logger.warn(message),
  });
  engine = new LockEngine({ ...settings, backend });
  return new LockService(engine);
}

interface BackendSurroundings {
  readonly clientId: string;
  readonly logger: LockLogger;
  readonly runtime: Runtime;
  readonly commandTimeout: number;
  readonly replicaTimeout: number;
  readonly onError: (error: unknown) => void;
  readonly onWarning: (message: string) => void;
}

function makeBackend(options: RedisLockOptions, surroundings: BackendSurroundings): LockBackend {
  const { connection, backend, quorum } = options;
  if (backend === 'memory') {
    if (!warnedOfMemory)
      surroundings.logger.warn(
        "backend: 'memory' keeps locks inside this process: they exclude no other process. Use a connection in production",
      );
    warnedOfMemory = true;
    return new MemoryBackend({ runtime: surroundings.runtime });
  }
  if (backend !== undefined) return backend;
  if (quorum === undefined) return redisBackend(connection as Connection, 'connection', options, surroundings);
  const nodes: LockBackend[] = [];
  try {
    for (const [n, master] of quorum.entries()) nodes.push(redisBackend(master, `quorum[${n}]`, options, surroundings));
  } catch (error) {
    for (const node of nodes) void node.close();
    throw error;
  }
  const { runtime, commandTimeout } = surroundings;
  return new QuorumBackend({ nodes, runtime, nodeTimeout: Math.min(LONGEST_NODE_TIMEOUT, commandTimeout) });
}

function redisBackend(
  connection: Connection,
  option: string,
  { minReplicas = 0, shardedPubSub = 'auto' }: RedisLockOptions,
  surroundings: BackendSurroundings,
): LockBackend {
  try {
    return new RedisBackend({ ...surroundings, connection, minReplicas, shardedPubSub });
  } catch (cause) {
    throw new LockConfigurationError(`RedisLockModule: ${option}: ${(cause as Error).message}`, { cause });
  }
}

function checkShape(options: RedisLockOptions): void {
  const refuse = (why: string): never => {
    throw new LockConfigurationError(`RedisLockModule: ${why}`);
  };
  if (typeof options !== 'object' || options === null) refuse('the options are missing');
  for (const option of Object.keys(options)) {
    if (!(OPTION_NAMES as string[]).includes(option))
      refuse(`there is no option '${option}'; there are ${OPTION_NAMES.join(', ')}`);
  }
  const places = (['connection', 'backend', 'quorum'] as const).filter((option) => options[option] !== undefined);
  if (places.length !== 1) {
    refuse(
      `give one of connection, backend and quorum (${places.length === 0 ? 'none is there' : `${places.join(' and ')} are there`}), such as { connection: 'redis://localhost:6379' }, or { backend: 'memory' } for tests`,
    );
  }
  const { backend, quorum, keyPrefix, onLost, minReplicas, shardedPubSub } = options;
  if (backend !== undefined && backend !== 'memory' && typeof (backend as LockBackend | null)?.acquire !== 'function')
    refuse("backend must be 'memory' or a LockBackend");
  if (quorum !== undefined && !(Array.isArray(quorum) && quorum.length >= 3 && quorum.length % 2 === 1))
    refuse(
      `quorum needs an odd number of connections, three or more, to masters that are no replicas of each other${Array.isArray(quorum) ? `, but there are ${quorum.length}` : ''}`,
    );
  if (keyPrefix !== undefined && (typeof keyPrefix !== 'string' || !bracesPair(keyPrefix)))
    refuse('keyPrefix must be a string whose braces pair');
  if (onLost !== undefined && onLost !== 'throw' && onLost !== 'warn')
    refuse(`onLost is '${onLost}'; it must be 'throw' or 'warn'`);
  if (minReplicas !== undefined && !(Number.isInteger(minReplicas) && minReplicas >= 0))
    refuse(`minReplicas is ${minReplicas}; it must be a whole number`);
  if (shardedPubSub !== undefined && !['auto', 'on', 'off'].includes(shardedPubSub))
    refuse(`shardedPubSub is '${shardedPubSub}'; it must be 'auto', 'on' or 'off'`);
}

/** A client that cannot connect says so many times a second: once in ten seconds is enough for each reason. */
const QUIET_TIME = 10_000;
const MOST_REASONS = 100;

function oncePerReason(report: (error: Error) => void): (error: unknown) => void {
  const told = new Map<string, number>();
  return (thrown) => {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    // Sentinel's says in how many ms it tries again, another number each time.
    const reason = error.message.replace(/\d+ ?ms/g, 'ms');
    const now = nodeRuntime.monotonic();
    if (now - (told.get(reason) ?? Number.NEGATIVE_INFINITY) < QUIET_TIME) return;
    if (told.size >= MOST_REASONS) told.clear();
    told.set(reason, now);
    report(error);
  };
}
