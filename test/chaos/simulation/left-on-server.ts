import { POOL, SEATS } from './errands/shared-objects.js';
import type { SimulatedServer } from './simulated/simulated-server.js';

/**
 * What should no longer be on the server when all processes have ended.
 *
 * @param deserted whether no process is left that could delete latches
 */
export function leftOn({ store, wall }: SimulatedServer, deserted: boolean): Readonly<Record<string, number>> {
  const { locks, fairWaiters, lines, synchronizers } = store;
  const now = wall();
  const latches = [...synchronizers.counters.keys()].filter((key) => key !== POOL && key !== SEATS);
  return {
    locks: locks.alive(now).length,
    queues: fairWaiters.alive(now).length,
    lines: lines.alive(now).length,
    latches: deserted ? 0 : latches.length,
    'permits with a lease': synchronizers.leasesOf(SEATS).size,
  };
}
