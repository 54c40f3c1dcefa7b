import type { Runtime } from '../../backends/runtime.js';
import type { WaitBackend } from '../../backends/wait-backend.js';
import { readAgain } from './find-cycle.js';
import type { FoundWait } from './journal-record.js';

/** Within this time, in milliseconds, every current wait is written again. */
const FIRST_LOOK = 400;
/** How long to wait for processes that are late: the time between two readings, and how many there are. */
const NEXT_LOOK = 200;
const MOST_LOOKS = 8;
/**
 * A cycle with a wait that ends by itself within this time, in milliseconds, is left to it: two callers would be
 * refused where one is enough. A wait whose time is over may still be written down.
 */
const SOON = 250;

/**
 * Makes sure that all waits of a cycle went on at one moment. They were read one after the other, so that some may have
 * ended before others began. Here they are read again; where each of them is written once more after that, all of them
 * were going on when they were read.
 *
 * @param over whether the caller, or another caller of this service, does not wait any more
 * @param time gives the time of the backend
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
  for (let look = 0; look < MOST_LOOKS; look++) {
    await new Promise<void>((resolve) => void runtime.timer(look === 0 ? FIRST_LOOK : NEXT_LOOK, resolve));
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

/** Whether each wait still stands behind the next one, and the last one behind the first. */
function isCycle(waits: readonly FoundWait[]): boolean {
  return waits.every(({ record }, i) => record.holders.includes(waits[(i + 1) % waits.length].holder));
}
