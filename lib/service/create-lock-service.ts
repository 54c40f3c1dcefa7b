import type { LockBackend } from '../backends/lock-backend.js';
import { toClientId } from '../backends/owner-ids.js';
import type { Runtime } from '../backends/runtime.js';
import { HarmlessLogger, type LockLogger } from '../engine/events/lock-logger.js';
import type { Standby } from '../engine/hold/standby.js';
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
import { openStandby } from '../standby/open-standby.js';
import { checkServiceOptions } from './check-options.js';
import { createBackend } from './create-backend.js';
import { LockService } from './lock-service.js';
import { processIdentity } from './process-identity.js';
import type { RedisLockOptions } from './redis-lock-options.js';

/**
 * Creates a lock service without NestJS. It connects immediately, and reconnects automatically. Acquisitions wait until
 * it is connected. Call `close()` at the end.
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
  const service = createLockServiceWith(nodeRuntime, options);
  service.keepAlive();
  return service;
}

/**
 * {@link createLockService} with the given runtime. The service does not keep the process alive before
 * `LockService.keepAlive` is called.
 */
export function createLockServiceWith(runtime: Runtime, options: RedisLockOptions): LockService {
  checkServiceOptions(options);
  const clientId = toClientId(runtime.uuid());
  const logger = new HarmlessLogger(options.logger ?? consoleLogger);
  const durations = resolveDurations(options);
  const { keyPrefix = 'lock:' } = options;
  let engine: LockEngine | undefined;
  let service: LockService | undefined;
  // All options are checked before this. If the constructor threw after it, the connection would reconnect forever.
  const backend = createBackend(options, {
    clientId,
    keyPrefix,
    logger,
    runtime,
    commandTimeout: durations.commandTimeout,
    onError: oncePerReason(runtime, (error) => engine?.report(error)),
    onWarning: (message) => engine?.warn(message),
    onConnected: (description, server) =>
      engine?.log(`${description}: connected to ${server}, keyPrefix '${keyPrefix}'`),
    onLimitedUser: () => void service?.warnIfDenied(),
  });
  const { keepWhileBlocked: _, ...settings } = durations;
  engine = new LockEngine({
    ...settings,
    standby: standbyOf(backend, { ...durations, backend, clientId, runtime }, logger),
    backend,
    clientId,
    identity: processIdentity(options.applicationName),
    logger,
    runtime,
    keyPrefix,
    onLost: options.onLost,
    release: options.release ?? 'confirmed',
    // In memory, locks are for tests and demos, which would log this each time.
    warnsOfUnlimitedWaits: options.waitTime === undefined && options.backend !== 'memory',
  });
  if (options.connect !== 'eager') warnWhenNotConnected(engine);
  service = new LockService(engine);
  return service;
}

/** If it is refused, nobody closes the backend. */
function standbyOf(
  backend: LockBackend,
  settings: Parameters<typeof openStandby>[1],
  logger: LockLogger,
): Standby | undefined {
  try {
    return openStandby(backend, settings, (message) => logger.warn(message));
  } catch (error) {
    backend.close().catch(() => {});
    throw error;
  }
}

type DurationOption = 'keepWhileBlocked' | 'commandTimeout' | 'watchdogTimeout' | 'waiterTimeout' | 'shutdownTimeout';

/** @throws LockConfigurationError naming the option that is not a duration, too short or too long */
function resolveDurations(
  options: RedisLockOptions,
): Record<DurationOption | 'waitTime' | 'outageTimeout', Milliseconds> {
  const duration = (option: DurationOption, otherwise: Duration, least = 0, most = MAX_TIMEOUT) =>
    toMilliseconds(options[option] ?? otherwise, `RedisLockModule: ${option}`, least, most);
  return {
    keepWhileBlocked: duration('keepWhileBlocked', 0),
    commandTimeout: duration('commandTimeout', '2s', 10),
    watchdogTimeout: duration('watchdogTimeout', '30s', MIN_LEASE_TIME, MAX_LEASE_TIME),
    waiterTimeout: duration('waiterTimeout', '5s', MIN_LEASE_TIME),
    waitTime: toWaitTime(options.waitTime ?? FOREVER, 'RedisLockModule: waitTime'),
    outageTimeout: toWaitTime(options.outageTimeout ?? '10s', 'RedisLockModule: outageTimeout'),
    shutdownTimeout: duration('shutdownTimeout', '10s'),
  };
}

/** For how many milliseconds the same reason is not reported again. */
const QUIET_TIME = 10_000;
const MAX_REASONS = 100;

/**
 * Reports an error unless one with the same message was reported in the last ten seconds. Without this limit, a client
 * that cannot connect would report many errors a second.
 */
function oncePerReason(runtime: Runtime, report: (error: Error) => void): (error: unknown) => void {
  const reportedAt = new Map<string, number>();
  return (thrown) => {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    // Messages of the Sentinel client contain the milliseconds until the next attempt, which differ each time.
    const reason = error.message.replace(/\d+ ?ms/g, 'ms');
    const now = runtime.monotonic();
    if (now - (reportedAt.get(reason) ?? Number.NEGATIVE_INFINITY) < QUIET_TIME) return;
    if (reportedAt.size >= MAX_REASONS) reportedAt.clear();
    reportedAt.set(reason, now);
    report(error);
  };
}

/** A service that has not reached its backend after this many milliseconds logs a warning. */
const PATIENCE = 2_000;

/**
 * Warns if the backend cannot be reached at the start, because acquisitions wait for it and the application may seem to
 * hang.
 */
function warnWhenNotConnected(engine: LockEngine): void {
  const { backend, runtime } = engine.settings;
  runtime.timer(PATIENCE, () => {
    const error = engine.isEnding ? undefined : backend.connectionError;
    if (error !== undefined)
      engine.warn(
        `${backend.description}: not connected after ${PATIENCE / 1_000} s (${error.message}). Acquisitions wait for the connection, for outageTimeout at most. With connect: 'eager', the application does not start without a connection`,
      );
  });
}

/** The logger for warnings and errors if neither NestJS nor the user provides one. */
const consoleLogger: LockLogger = {
  warn: (message) => console.warn(`[RedisLock] ${message}`),
  error: (message) => console.error(`[RedisLock] ${message}`),
};
