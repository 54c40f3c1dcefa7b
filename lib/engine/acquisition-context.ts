import type { LockBackend } from '../backends/lock-backend.js';
import type { Runtime } from '../backends/runtime.js';
import type { ClientPresence } from './clients/client-presence.js';
import type { HolderLookup } from './clients/holder-lookup.js';
import type { NestedWaits } from './deadlock/nested-waits.js';
import type { EventHub } from './events/events.js';
import type { BackgroundReleases } from './lease/background-releases.js';
import type { LeaseClock } from './lease/lease-clock.js';
import type { PendingAcquisitions } from './lease/pending-acquisitions.js';
import type { Watchdog } from './lease/watchdog.js';
import type { Outages } from './waiting/outages.js';

/** What every acquisition and every lease of one service uses. There is one for each service, which is known by it. */
export interface AcquisitionContext {
  readonly backend: LockBackend;
  readonly runtime: Runtime;
  readonly clock: LeaseClock;
  readonly events: EventHub;
  readonly watchdog: Watchdog;
  readonly backgroundReleases: BackgroundReleases;
  readonly pendingAcquisitions: PendingAcquisitions;
  /** Finds deadlocks. */
  readonly nestedWaits: NestedWaits;
  /** Bounds waits while the backend does not answer. */
  readonly outages: Outages;
  readonly clientId: string;
  /** Tells others who this client is. */
  readonly presence: ClientPresence;
  /** Finds out who the others are. */
  readonly holders: HolderLookup;
  /** Milliseconds after which the backend drops a waiter (of a fair lock, or a waiting writer) that has given no sign of life. */
  readonly fairWaitTimeout: number;
  /** Readers of this process give way to waiting writers. */
  readonly preferWriters: boolean;
}
