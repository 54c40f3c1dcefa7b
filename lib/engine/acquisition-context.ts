import type { LockBackend } from '../backends/lock-backend.js';
import type { Runtime } from '../backends/runtime.js';
import type { EventHub } from './events.js';
import type { BackgroundReleases } from './lease/background-releases.js';
import type { ForcedReleases } from './lease/forced-releases.js';
import type { LeaseClock } from './lease/lease-clock.js';
import type { PendingAcquisitions } from './lease/pending-acquisitions.js';
import type { Watchdog } from './lease/watchdog.js';
import type { QueueKeeper } from './queue/acquisition-queue.js';

/** What the parts of one engine share. */
export interface AcquisitionContext {
  readonly queues: QueueKeeper;
  readonly backend: LockBackend;
  readonly runtime: Runtime;
  readonly clock: LeaseClock;
  readonly events: EventHub;
  readonly watchdog: Watchdog;
  readonly backgroundReleases: BackgroundReleases;
  readonly pendingAcquisitions: PendingAcquisitions;
  readonly forced: ForcedReleases;
  readonly clientId: string;
  /** How long a place of a waiting writer or fair waiter outlives its last sign of life. */
  readonly fairWaitTimeout: number;
  /** Readers of ours stand back for waiting writers. */
  readonly preferWriters: boolean;
}
