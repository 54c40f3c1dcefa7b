import type { Runtime } from '../backends/runtime.js';
import { toClientId } from '../engine/clients/client-identity.js';
import { HarmlessLogger } from '../engine/events/harmless-logger.js';
import { LockEngine } from '../engine/lock-engine.js';
import { nodeRuntime } from '../engine/node-runtime.js';
import {
  type Duration,
  FOREVER,
  MAX_LEASE_TIME,
  MAX_TIMEOUT,
  MIN_LEASE_TIME,
  type Milliseconds,
  toMilliseconds,
  toWaitTime,
} from '../engine/terms/duration.js';
import { checkOptions } from './check-options.js';
import { clientIdentity } from './client-identity.js';
import { warnWhenNotConnected } from './connection-warning.js';
import { consoleLogger } from './console-logger.js';
import { createBackend } from './create-backend.js';
import { LockService } from './lock-service.js';
import { oncePerReason } from './once-per-reason.js';
import type { RedisLockOptions } from './redis-lock-options.js';

/**
 * Makes a lock service without NestJS. It connects at once, and reconnects by itself; acquisitions wait until it is connected. End
 * it with `close()`.
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
  return createLockServiceWith(nodeRuntime, options);
}

/** {@link createLockService} with a runtime of the caller, for `nestjs-redis-lock/testing`. */
export function createLockServiceWith(runtime: Runtime, options: RedisLockOptions): LockService {
  checkOptions(options);
  const clientId = toClientId(runtime.uuid());
  const logger = new HarmlessLogger(options.logger ?? consoleLogger);
  const { replicaTimeout, ...durations } = resolveDurations(options);
  let engine: LockEngine | undefined;
  // Only now that all options were checked: a connection that nobody owns would reconnect for ever.
  const backend = createBackend(options, {
    clientId,
    logger,
    runtime,
    replicaTimeout,
    commandTimeout: durations.commandTimeout,
    onError: oncePerReason(runtime, (error) => engine?.report(error)),
    onWarning: (message) => engine?.warn(message),
  });
  engine = new LockEngine({
    ...durations,
    backend,
    clientId,
    identity: clientIdentity(options.applicationName),
    logger,
    runtime,
    keyPrefix: options.keyPrefix ?? 'lock:',
    allowSuspiciousNames: options.allowSuspiciousNames,
    onLost: options.onLost ?? 'throw',
  });
  if (options.connect !== 'eager') warnWhenNotConnected(engine);
  return new LockService(engine);
}

type DurationOption = 'commandTimeout' | 'watchdogTimeout' | 'fairWaitTimeout' | 'shutdownTimeout' | 'replicaTimeout';

/** @throws LockConfigurationError naming the option that is not a duration, too short or too long */
function resolveDurations(options: RedisLockOptions): Record<DurationOption | 'waitTime', Milliseconds> {
  const duration = (option: DurationOption, otherwise: Duration, least = 0, most = MAX_TIMEOUT) =>
    toMilliseconds(options[option] ?? otherwise, `RedisLockModule: ${option}`, least, most);
  return {
    commandTimeout: duration('commandTimeout', '2s', 10),
    watchdogTimeout: duration('watchdogTimeout', '30s', MIN_LEASE_TIME, MAX_LEASE_TIME),
    fairWaitTimeout: duration('fairWaitTimeout', '5s', MIN_LEASE_TIME),
    waitTime: toWaitTime(options.waitTime ?? FOREVER, 'RedisLockModule: waitTime'),
    shutdownTimeout: duration('shutdownTimeout', '10s'),
    replicaTimeout: duration('replicaTimeout', '1s', 1),
  };
}
