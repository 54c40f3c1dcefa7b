import type { LockClient } from '../contestants/contestant.js';
import { percentile } from '../measure/statistics.js';

/** Tries of one contestant before it is the other one's turn. */
const IN_TURN = 4;

/**
 * Tries that find the lock busy, of two contestants in one process, a few of each in turn. See duel.ts for the reason.
 *
 * @param callers how many try at the same time
 * @returns the median time of each until all callers have been refused, in µs
 */
export async function refusals(
  clients: readonly LockClient[],
  key: string,
  callers: number,
  turns: number,
): Promise<number[]> {
  const times: number[][] = clients.map(() => []);
  for (let turn = 0; turn < turns; turn++) {
    for (const [i, client] of clients.entries()) {
      for (let operation = 0; operation < IN_TURN; operation++) {
        const asked = performance.now();
        const handles =
          callers === 1
            ? [await client.tryFor!(key, 0)]
            : await Promise.all(Array.from({ length: callers }, () => client.tryFor!(key, 0)));
        times[i].push(performance.now() - asked);
        if (handles.some((handle) => handle !== undefined)) throw new Error(`${key} was not busy`);
      }
    }
  }
  return times.map((each) => percentile(each, 0.5) * 1e3);
}
