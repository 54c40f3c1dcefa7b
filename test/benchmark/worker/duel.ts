import type { LockClient } from '../contestants/contestant.js';
import { percentile } from '../measure/statistics.js';

/** Operations of one contestant before it is the other one's turn. */
const IN_TURN = 4;

/**
 * Two contestants in one process, a few operations each in turn: one caller, a fresh key each time. The cores on which
 * the operating system runs the process and the server can change a latency threefold from one moment to the next, so
 * both contestants are measured at the same moments.
 *
 * @returns the median latency of each, from the call of acquire to the end of release, in µs
 */
export async function duel(clients: readonly LockClient[], key: string, turns: number): Promise<number[]> {
  const latencies: number[][] = clients.map(() => []);
  let fresh = 0;
  for (let turn = 0; turn < turns; turn++) {
    for (const [i, client] of clients.entries()) {
      for (let operation = 0; operation < IN_TURN; operation++) {
        const asked = performance.now();
        const name = `${key}:${i}:${++fresh}`;
        if (client.hold !== undefined) await client.hold(name, () => {});
        else await client.release(await client.acquire(name));
        latencies[i].push(performance.now() - asked);
      }
    }
  }
  return latencies.map((each) => percentile(each, 0.5) * 1e3);
}
