/**
 * `LockBackend` and its types, for your own backend, and what the backends of this library share. Pass a backend to a
 * service as the option `backend`. `nodeRuntime`, the clock and timers of a real process, is in
 * `nestjs-redis-lock/core`.
 *
 * It changes with the lock engine, and may do so in any minor version.
 *
 * @experimental
 * @packageDocumentation
 */
export { parseClientRecord } from './backends/directory/client-record.js';
export { keyPage } from './backends/directory/key-page.js';
export { InProcessWaits, WaitStore } from './backends/in-process-waits.js';
export {
  type AcquireAllReply,
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
  type AdoptReply,
  type AdoptRequest,
  agedRecord,
  BackendError,
  type BackendHealth,
  type BlockingBackend,
  type Busy,
  type ClientRecord,
  type DetachableType,
  type ExpectedHolders,
  type FlightBackend,
  type FlightBusy,
  type FlightRelease,
  type FlightReleaseReply,
  type FlightReply,
  type FlightRequest,
  type FlightRun,
  type Grant,
  type HeldType,
  type HoldRecord,
  type KeyPage,
  type LockBackend,
  type LockDirectory,
  type LockState,
  type LockType,
  NodeHealth,
  type NodeWatch,
  type OwnerRef,
  type ReleaseReply,
  type ReleaseRequest,
  type Removal,
  type RenewRequest,
  type ResultState,
  SingleNodeWatch,
  type StoredResult,
  type Subscription,
  type TransferableType,
  type TransferRequest,
  type WaitRecord,
  type Wake,
} from './backends/lock-backend.js';
export { isOwnerOf } from './backends/owner-ids.js';
export { printsAs } from './backends/prints-as.js';
export { deadlineTimer, type Moment, momentOf, type Runtime, type Timer } from './backends/runtime.js';
export type {
  PermitCounts,
  RequestId,
  SynchronizerBackend,
  SynchronizerKind,
  TakenPermits,
} from './backends/synchronizer-backend.js';
export type {
  HeldPermit,
  SemaphoreType,
  SynchronizerState,
  SynchronizerType,
} from './backends/synchronizer-state.js';
export type { WaitBackend, WaitChange } from './backends/wait-backend.js';
