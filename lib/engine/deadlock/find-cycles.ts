import type { WaitBackend } from '../../backends/wait-backend.js';
import { type FoundWait, parseRecord } from './wait-record.js';

/** The longest cycle that is found, in waits. */
const MOST_STEPS = 16;
/** So many owners are looked at in one step. */
const MOST_HOLDERS = 1_000;

/** An owner, and the waits by which one comes to wait for it. */
interface Way {
  readonly holder: string;
  readonly waits: readonly FoundWait[];
}

/**
 * Follows waits from holder to holder, from callers that all wait for the same ones back to themselves.
 *
 * @param holders whom these callers wait for
 * @param ids their waits
 * @returns for each wait that is part of a cycle, a shortest one: the waits that it stands behind, one behind the other, with itself as the last
 * @see K. M. Chandy, J. Misra, L. M. Haas, Distributed Deadlock Detection (ACM TOCS 1983): edge chasing
 */
export async function findCycles(
  backend: WaitBackend,
  holders: readonly string[],
  ids: ReadonlySet<string>,
): Promise<ReadonlyMap<string, readonly FoundWait[]>> {
  const cycles = new Map<string, readonly FoundWait[]>();
  const seen = new Set(holders);
  let ways: readonly Way[] = holders.map((holder) => ({ holder, waits: [] }));
  for (let step = 0; step < MOST_STEPS && ways.length > 0 && cycles.size < ids.size; step++) {
    const found = await readWaits(
      backend,
      ways.map(({ holder }) => holder),
    );
    const next: Way[] = [];
    for (const [index, waitsOfHolder] of found.entries()) {
      for (const wait of waitsOfHolder) {
        const waits = [...ways[index].waits, wait];
        if (ids.has(wait.id) && !cycles.has(wait.id)) cycles.set(wait.id, waits);
        for (const holder of wait.record.holders) {
          if (seen.has(holder)) continue;
          seen.add(holder);
          next.push({ holder, waits });
        }
      }
    }
    ways = next.slice(0, MOST_HOLDERS);
  }
  return cycles;
}

/** The waits of each of these owners. */
async function readWaits(backend: WaitBackend, holders: readonly string[]): Promise<FoundWait[][]> {
  const read = await backend.read(holders);
  return holders.map((holder, index) =>
    [...read[index]].flatMap(([id, text]) => {
      const record = parseRecord(text);
      return record === undefined ? [] : [{ holder, id, record }];
    }),
  );
}

/** The same waits as they are now; `undefined` when one of them is not there any more. */
export async function readAgain(
  backend: WaitBackend,
  cycle: readonly FoundWait[],
): Promise<readonly FoundWait[] | undefined> {
  const holders = [...new Set(cycle.map(({ holder }) => holder))];
  const found = (await readWaits(backend, holders)).flat();
  const now = cycle.map(({ holder, id }) => found.find((wait) => wait.holder === holder && wait.id === id));
  return now.every((wait) => wait !== undefined) ? now : undefined;
}
