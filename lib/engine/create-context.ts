import type { AcquisitionContext } from './acquisition-context.js';
import { ClientPresence, type Stock } from './clients/client-presence.js';
import { HolderLookup } from './clients/holder-lookup.js';
import { NestedWaits } from './deadlock/nested-waits.js';
import { EventHub } from './events/events.js';
import { RateLimitedLogger } from './events/rate-limited-logger.js';
import { BackgroundReleases } from './lease/background-releases.js';
import { ForcedReleases } from './lease/forced-releases.js';
import type { HeldLock } from './lease/held-lock.js';
import { LeaseClock } from './lease/lease-clock.js';
import { Watchdog } from './lease/watchdog.js';
import { DEFAULT_COMMAND_TIMEOUT, type EngineSettings } from './terms/engine-settings.js';
import { pointChannels } from './trace/channels.js';
import { Outages, type WaitingQueues } from './waiting/outages.js';

/**
 * @param heldLocks the locks that the service holds: under one key, or all of them
 * @param takeStock what it holds and waits for
 * @param queues in which callers wait
 */
export function createContext(
  settings: EngineSettings,
  heldLocks: (key?: string) => readonly HeldLock[],
  takeStock: () => Stock,
  queues: WaitingQueues,
): { readonly context: AcquisitionContext; readonly forcedReleases: ForcedReleases; readonly stop: () => void } {
  const { backend, runtime, logger, clientId, watchdogTimeout, fairWaitTimeout } = settings;
  const { commandTimeout = DEFAULT_COMMAND_TIMEOUT } = settings;
  const clock = new LeaseClock(runtime);
  const events = new EventHub(runtime, new RateLimitedLogger(logger, runtime), pointChannels);
  const presence = new ClientPresence(settings, events.logger, takeStock);
  const holders = new HolderLookup(settings);
  const onHeartbeat = () => {
    forcedReleases.listen();
    presence.noticed(0);
  };
  const watchdog = new Watchdog(backend, runtime, clock, events, watchdogTimeout, onHeartbeat);
  const backgroundReleases = new BackgroundReleases(backend, runtime, commandTimeout);
  const forcedReleases = new ForcedReleases(backend, runtime, clientId, heldLocks, events);
  const { pendingAcquisitions } = forcedReleases;
  const warn = (message: string) => events.logger.warn(message);
  const nestedWaits = new NestedWaits(backend.waits, runtime, clientId, (owner) => holders.find(owner), warn);
  const outages = new Outages(backend, runtime, events, queues);
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
      outages,
      clientId,
      presence,
      holders,
      fairWaitTimeout,
      preferWriters: true,
    },
    forcedReleases,
    stop: () => {
      for (const part of [outages, watchdog, backgroundReleases, forcedReleases, nestedWaits, presence, holders])
        part.close();
    },
  };
}
