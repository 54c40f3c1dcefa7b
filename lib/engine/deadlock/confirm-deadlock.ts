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
 * A wait that times out within this time, in milliseconds, is not counted, because otherwise two callers would be
 * refused although one is enough. A wait that has timed out may still be in the journal.
 */
const SOON = 250;

/** Waits that seem to wait for each other. */
export interface PossibleDeadlock {
  /** A wait can be in it several times, with different owners. The caller's own wait is the last. */
  readonly waits: readonly FoundWait[];
  /** For the error: each of these waits for the owner of the next one, and the last for the owner of the first. */
  readonly cycle: readonly FoundWait[];
  /** Whether these waits, which are those that are still under way, make a deadlock that the caller is to end. */
  isDeadlock(waits: readonly FoundWait[]): boolean;
}

/** @param cycle the caller's own wait is the last */
export function deadlockOf(cycle: readonly FoundWait[]): PossibleDeadlock {
  return { waits: cycle, cycle, isDeadlock: (waits) => waits.length === cycle.length && isCycle(waits) };
}

/**
 * Makes sure that all waits of a deadlock were under way at the same moment. They were read one after another, so some
 * may have ended before others began. This function reads them again. If each of them is written once more after that,
 * all of them were under way when they were read.
 *
 * @param hasEnded whether this is a wait of this service that has ended
 * @param time returns the backend's time
 */
export async function confirmDeadlock(
  backend: WaitBackend,
  runtime: Runtime,
  { waits, isDeadlock }: PossibleDeadlock,
  hasEnded: (id: string) => boolean,
  time: () => number,
): Promise<boolean> {
  const own = waits[waits.length - 1].id;
  const counts = ({ id, record: { ends } }: FoundWait) =>
    !hasEnded(id) && (id === own || ends === undefined || time() < ends - SOON);
  const before = present(await readAgain(backend, waits));
  if (!isDeadlock(before)) return false;
  for (let check = 0; check < MOST_CHECKS; check++) {
    await new Promise<void>((resolve) => void runtime.timer(check === 0 ? FIRST_CHECK : NEXT_CHECK, resolve));
    if (hasEnded(own)) return false;
    const now = await readAgain(backend, before);
    if (!isDeadlock(present(now).filter(counts))) return false;
    const again = now.filter((wait, i) => wait !== undefined && wait.record.beat > before[i].record.beat);
    if (isDeadlock(present(again).filter(counts))) return true;
  }
  return false;
}

function present(waits: readonly (FoundWait | undefined)[]): readonly FoundWait[] {
  return waits.filter((wait) => wait !== undefined);
}

/** Whether each wait waits for the owner of the next one, and the last for the owner of the first. */
function isCycle(waits: readonly FoundWait[]): boolean {
  return waits.every(({ record }, i) => record.holders.includes(waits[(i + 1) % waits.length].holder));
}
