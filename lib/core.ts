// The lock service without NestJS: no file that this one imports, directly or indirectly, imports a NestJS package.
export type { HeldType, LockType } from './backends/lock-backend.js';
export { MemoryBackend } from './backends/redis/in-process/memory-backend.js';
export { MemoryStore } from './backends/redis/in-process/memory-store.js';
export type { SemaphoreType, SynchronizerType } from './backends/synchronizer-state.js';
export type { HolderClient } from './engine/describe-holder.js';
export {
  type DeadlockMember,
  LockAbortedError,
  LockBusyError,
  LockConfigurationError,
  LockDeadlockError,
  LockError,
  LockKeyError,
  LockLostError,
  LockNotOwnedError,
  LockSupersededError,
  LockUnavailableError,
  LockUpgradeError,
} from './engine/errors.js';
export type { AcquireMessage, HoldMessage, PointMessages } from './engine/events/channels.js';
export type { AcquireOutcome, LockEvent, LockEventName, LockEvents, OwnerEvent } from './engine/events/lock-events.js';
export type { LockLogger } from './engine/events/lock-logger.js';
export type { FlightOptions } from './engine/flights/flight-terms.js';
export type { FlightSerializer, Json, JsonResult } from './engine/flights/serialize-result.js';
export type { Leadership, LeadOptions } from './engine/leadership/leadership.js';
export { nodeRuntime } from './engine/node-runtime.js';
export { currentLease, outsideLocks } from './engine/scope/lock-scope.js';
export type { PermitLease } from './engine/synchronizers/permit-lease.js';
export type { Duration } from './engine/terms/duration.js';
export type { DetachOptions, Lease, MultiLease } from './engine/terms/lease.js';
export type { LockNames } from './engine/terms/lock-name.js';
export { type LockNamePart, lockName } from './engine/terms/lock-name-tag.js';
export type { AdoptOptions, LockOptions, ReleaseMode } from './engine/terms/lock-options.js';
export type { CountDownLatch } from './handles/count-down-latch.js';
export type { FairLock } from './handles/fair-lock.js';
export type { FencedLock } from './handles/fenced-lock.js';
export type { LockHandle } from './handles/lock-handle.js';
export type { MultiLock } from './handles/multi-lock.js';
export type { PermitExpirableSemaphore } from './handles/permit-semaphore.js';
export type { ReadWriteLock, ReadWriteLockSide } from './handles/read-write-lock.js';
export type { RedLock } from './handles/red-lock.js';
export type { ReentrantLock } from './handles/reentrant-lock.js';
export type { Semaphore } from './handles/semaphore.js';
export type { SemaphoreOptions } from './handles/semaphore-options.js';
export type { WaitOptions, WithPermitOptions } from './handles/wait-options.js';
export { createLockService } from './service/create-lock-service.js';
export type { ClientHold, ClientWait, LockClient } from './service/lock-client.js';
export type {
  ForceReleaseOptions,
  InspectedOwner,
  InspectedPermit,
  ListedLock,
  ListedResult,
  ListedSynchronizer,
  ListOptions,
  LockInspection,
  LockList,
  ResultInspection,
  SynchronizerInspection,
  WaitingClient,
} from './service/lock-inspection.js';
export { LockService } from './service/lock-service.js';
export type {
  ClusterConnection,
  Connection,
  NodeRedisConnection,
  RedisLockOptions,
} from './service/redis-lock-options.js';
export type { LockServiceHealth } from './service/service-health.js';
