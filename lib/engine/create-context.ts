import type { AcquisitionContext } from './acquisition-context.js';
import { NestedWaits } from './deadlock/nested-waits.js';
import { EventHub } from './events/events.js';
import { RateLimitedLogger } from './events/rate-limited-logger.js';
import { BackgroundReleases } from './lease/background-releases.js';
import { ForcedReleases } from './lease/forced-releases.js';
import type { HeldLock } from './lease/held-lock.js';
import { LeaseClock } from './lease/lease-clock.js';
import { Watchdog } from './lease/watchdog.js';
import type { EngineSettings } from './terms/engine-settings.js';

/** @param heldLocks the locks that the service holds: under one key, or all of them */
export function createContext(
  settings: EngineSettings,
  heldLocks: (key?: string) => readonly HeldLock[],
): { readonly context: AcquisitionContext; readonly forcedReleases: ForcedReleases; readonly stop: () => void } {
  const { backend, runtime, logger, clientId, watchdogTimeout, fairWaitTimeout } = settings;
  const clock = new LeaseClock(runtime);
  const events = new EventHub(runtime, new RateLimitedLogger(logger, runtime));
  const watchdog = new Watchdog(backend, runtime, clock, events, watchdogTimeout, () => forcedReleases.listen());
  const backgroundReleases = new BackgroundReleases(backend, runtime);
  const forcedReleases = new ForcedReleases(backend, runtime, clientId, heldLocks);
  const { pendingAcquisitions } = forcedReleases;
  const nestedWaits = new NestedWaits(backend.waits, runtime, clientId, (message) => events.logger.warn(message));
  return {
    context: {
      backend,
      runtime,
      clock,
      events,
      watchdog,
      backgroundReleases,
      pendingAcquisitions,
      nestedWaits,
      clientId,
      fairWaitTimeout,
      preferWriters: true,
    },
    forcedReleases,
    stop: () => {
      for (const part of [watchdog, backgroundReleases, forcedReleases, nestedWaits]) part.close();
    },
  };
}
