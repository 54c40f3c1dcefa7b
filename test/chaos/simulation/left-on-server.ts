import { POOL, SEATS } from './commons.js';
import type { SimulatedServer } from './simulated-server.js';

/**
 * What should not be there any more when everybody has gone.
 *
 * @param deserted no process is left that could end latches
 */
export function leftOn({ store, wall }: SimulatedServer, deserted: boolean): Readonly<Record<string, number>> {
  const { locks, fairWaiters, waitingWriters, synchronizers } = store;
  const now = wall();
  const latches = [...synchronizers.counters.keys()].filter((key) => key !== POOL && key !== SEATS);
  return {
    locks: locks.alive(now).length,
    queues: fairWaiters.alive(now).length,
    'announced writers': waitingWriters.alive(now).length,
    latches: deserted ? 0 : latches.length,
    'permits with a lease': synchronizers.leasesOf(SEATS).size,
  };
}
