import type { Runtime } from '../../backends/runtime.js';
import type { WaitBackend } from '../../backends/wait-backend.js';
import { readAgain } from './find-cycle.js';
import type { FoundWait } from './journal-record.js';

/** After this many milliseconds, every wait that continues has been written again. */
const FIRST_CHECK = 400;
/**
 * How long to wait for slow processes: the time between two checks in milliseconds, and the number of checks.
 */
const NEXT_CHECK = 200;
const MOST_CHECKS = 8;
/**
 * A cycle in which a wait times out within this time, in milliseconds, is left alone, because otherwise two callers
 * would be refused although one is enough. A wait that has timed out may still be in the journal.
 */
const SOON = 250;

/**
 * Makes sure that all waits of a cycle were under way at the same moment. They were read one after another, so some may
 * have ended before others began. This function reads them again. If each of them is written once more after that, all
 * of them were under way when they were read.
 *
 * @param over whether the caller, or another caller of this service, has stopped waiting
 * @param time returns the backend's time
 */
export async function confirmCycle(
  backend: WaitBackend,
  runtime: Runtime,
  cycle: readonly FoundWait[],
  over: () => boolean,
  time: () => number,
): Promise<boolean> {
  const before = await readAgain(backend, cycle);
  if (before === undefined || !isCycle(before)) return false;
  for (let check = 0; check < MOST_CHECKS; check++) {
    await new Promise<void>((resolve) => void runtime.timer(check === 0 ? FIRST_CHECK : NEXT_CHECK, resolve));
    if (over()) return false;
    const now = await readAgain(backend, before);
    if (now === undefined || !isCycle(now) || over()) return false;
    if (others(now).some(({ record: { ends } }) => ends !== undefined && time() >= ends - SOON)) return false;
    if (now.every(({ record }, i) => record.beat > before[i].record.beat)) return true;
  }
  return false;
}

/** All but the caller's own wait. */
function others(cycle: readonly FoundWait[]): readonly FoundWait[] {
  return cycle.slice(0, -1);
}

/** Whether each wait waits for the owner of the next one, and the last for the owner of the first. */
function isCycle(waits: readonly FoundWait[]): boolean {
  return waits.every(({ record }, i) => record.holders.includes(waits[(i + 1) % waits.length].holder));
}
