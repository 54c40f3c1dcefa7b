import type { LockBackend } from '../backends/lock-backend.js';
import type { Runtime } from '../backends/runtime.js';
import type { QueueKeeper } from './acquisition-queue.js';
import type { EventHub } from './events.js';
import type { Flights } from './flights.js';
import type { ForcedReleases } from './forced-releases.js';
import type { LeaseClock } from './lease-clock.js';
import type { Orphans } from './orphans.js';
import type { Watchdog } from './watchdog.js';

/** What the parts of one engine share. */
export interface EngineParts {
  readonly queues: QueueKeeper;
  readonly backend: LockBackend;
  readonly runtime: Runtime;
  readonly clock: LeaseClock;
  readonly events: EventHub;
  readonly watchdog: Watchdog;
  readonly orphans: Orphans;
  readonly flights: Flights;
  readonly forced: ForcedReleases;
  readonly clientId: string;
  /** How long a place of a waiting writer or fair waiter outlives its last sign of life. */
  readonly placeTimeout: number;
  /** Readers of ours stand back for waiting writers. */
  readonly preferWriters: boolean;
}
