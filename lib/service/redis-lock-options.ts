import type { LockBackend } from '../backends/lock-backend.js';
import type { Connection } from '../backends/redis/links/connection.js';
import type { LockLogger } from '../engine/events/lock-logger.js';
import type { Duration } from '../engine/terms/duration.js';
import type { ReleaseMode } from '../engine/terms/lock-options.js';

export type { ClusterConnection, Connection, NodeRedisConnection } from '../backends/redis/links/connection.js';

/**
 * Options of `RedisLockModule.forRoot` and `createLockService`. Give exactly one of `connection`, `backend` and
 * `quorum`.
 *
 * Durations are at most 2³¹ − 1 ms (24 days); `watchdogTimeout`, which is a lease, at most 10 years; `waitTime` and
 * `outageTimeout` may be `Infinity`.
 *
 * @publicApi
 */
export interface RedisLockOptions {
  /** The Redis that keeps the locks. */
  readonly connection?: Connection;
  /**
   * `'memory'` keeps the locks of this service in memory, for tests and demos. To share them between services, pass
   * each a MemoryBackend on the same MemoryStore. You can also pass your own implementation.
   */
  readonly backend?: 'memory' | LockBackend;
  /** Redlock over independent masters: an odd number of connections, three or more. */
  readonly quorum?: readonly Connection[];
  /** Name of this service, for `@InjectLockService(name)` and `@DistributedLock({ service: name })`. */
  readonly name?: string;
  /**
   * The name of this application in logs, on dashboards and in other processes. Default: the name in its package.json.
   */
  readonly applicationName?: string;
  /** Whether other modules can inject the service without importing the module. Default true. */
  readonly isGlobal?: boolean;
  /**
   * The prefix of every lock name in Redis, at most 512 bytes. It must not begin with `nestjs_redis_lock_`. Default
   * `'lock:'`.
   */
  readonly keyPrefix?: string;
  /**
   * The lease of locks without a `leaseTime`. It is renewed when a third of it has passed. Default `'30s'`, at least
   * 100 ms.
   */
  readonly watchdogTimeout?: Duration;
  /**
   * How long a waiter that has died can hold up others: a waiter of a fair lock, or a process in line. A process behind
   * 64 others in a line can do so for four times as long. Default `'5s'`.
   */
  readonly waiterTimeout?: Duration;
  /**
   * The `waitTime` of acquisitions that do not set their own. Default: forever. If it is not set, the first caller that
   * waits without a limit is reported by a warning; `Infinity` says that this is intended.
   */
  readonly waitTime?: Duration;
  /**
   * How long acquisitions wait while Redis does not answer before they fail with LockUnavailableError. With `Infinity`,
   * they wait until Redis answers again. Default `'10s'`. The time counts from the first request without an answer. The
   * service keeps trying to renew the locks that it holds until their leases end.
   */
  readonly outageTimeout?: Duration;
  /**
   * How long a shutdown waits, from `beforeApplicationShutdown` on, for locks that are held or waited for. After that, waits
   * end, and the signals of running bodies abort. Default `'10s'`.
   */
  readonly shutdownTimeout?: Duration;
  /**
   * What happens if a lock was lost while a body ran: `'throw'` LockLostError (default), or `'warn'` and return the
   * result.
   */
  readonly onLost?: 'throw' | 'warn';
  /**
   * When `withLock` and decorated methods settle. `'confirmed'` (default) waits until Redis has answered the release.
   * `'background'` settles when the body has ended, a round trip earlier. It cannot be combined with an explicit
   * `onLost: 'throw'`, `minReplicas`, `quorum` or row locks. See `LockOptions.release`.
   */
  readonly release?: ReleaseMode;
  /**
   * An acquisition succeeds only if this many replicas confirm it within `commandTimeout`. Default 0: replicas are not
   * asked.
   */
  readonly minReplicas?: number;
  /**
   * The time-out of a single Redis command. Default `'2s'`, at least 10 ms. An acquisition whose connection has gone
   * silent is then sent once more on a new one, for at most another second.
   */
  readonly commandTimeout?: Duration;
  /**
   * How long locks are kept while the event loop is blocked, for example by a body that computes. A worker thread with
   * its own connection renews them. Choose the longest block that you expect; it should be longer than
   * `watchdogTimeout`. Default 0: the locks are lost when the loop is blocked for longer than their lease. Only on Redis.
   * In memory it has no effect.
   */
  readonly keepWhileBlocked?: Duration;
  /** Sharded pub/sub: `'auto'` (default) uses it as Redisson does, on clusters of Redis 7 and later. */
  readonly shardedPubSub?: 'auto' | 'on' | 'off';
  /**
   * With `'lazy'` (default), the application starts even if Redis cannot be reached. A warning is logged after two
   * seconds, and acquisitions wait. With `'eager'`, the start fails with LockUnavailableError (without NestJS, await
   * `connect()`).
   */
  readonly connect?: 'lazy' | 'eager';
  /** Receives warnings and errors. Default: NestJS's Logger, or the console without NestJS. */
  readonly logger?: LockLogger;
}
