import type { LockBackend } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import type { BackgroundReleases } from '../ask/background-releases.js';
import type { UnsettledReleases } from '../ask/unsettled-releases.js';
import type { EventHub } from '../events/event-hub.js';
import type { LeaseClock } from '../time/lease-clock.js';
import type { HeldLock } from './held-lock.js';
import type { Watchdog } from './watchdog.js';

/** The parts of a service that keep a lock, and let it go. */
export interface HoldServices {
  readonly backend: LockBackend;
  readonly runtime: Runtime;
  readonly clock: LeaseClock;
  readonly events: EventHub;
  readonly backgroundReleases: BackgroundReleases;
  readonly unsettledReleases: UnsettledReleases;
  readonly watchdog: Watchdog<HeldLock>;
}
