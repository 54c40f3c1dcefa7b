/**
 * `LockBackend` and its types, for your own backend. Pass it to a service as the option `backend`.
 *
 * It changes with the lock engine, and may do so in any minor version.
 *
 * @experimental
 * @packageDocumentation
 */
export {
  type AcquireAllReply,
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
  type AdoptReply,
  type AdoptRequest,
  BackendError,
  type BackendHealth,
  type BlockingBackend,
  type Busy,
  type ClientRecord,
  type ExpectedHolders,
  type FlightBackend,
  type FlightBusy,
  type FlightRelease,
  type FlightReleaseReply,
  type FlightReply,
  type FlightRequest,
  type FlightRun,
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
