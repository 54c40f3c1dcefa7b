import type { WaitBackend } from '../../backends/wait-backend.js';
import { type FoundWait, isBefore, parseRecord } from './journal-record.js';

/** The longest cycle that is found, in waits. */
const MOST_STEPS = 16;
/** How many owners are read in one step. */
const MOST_HOLDERS = 1_000;

/** An owner, and the waits by which one comes to wait for it. */
interface Way {
  readonly holder: string;
  readonly waits: readonly FoundWait[];
}

/** Reads the waits of owners, each owner's once. */
export class WaitReader {
  private readonly read = new Map<string, Promise<readonly FoundWait[]>>();

  constructor(private readonly backend: WaitBackend) {}

  waitsOf(holder: string): Promise<readonly FoundWait[]> {
    let waits = this.read.get(holder);
    if (waits === undefined) {
      waits = this.ask(holder);
      this.read.set(holder, waits);
    }
    return waits;
  }

  private async ask(holder: string): Promise<readonly FoundWait[]> {
    const [waits] = await this.backend.read([holder]);
    return [...waits].flatMap(([id, text]) => {
      const record = parseRecord(text);
      return record === undefined ? [] : [{ holder, id, record }];
    });
  }
}

/**
 * Follows waits from holder to holder, from one wait back to itself, by waits that began before it. In every circle
 * there is one wait that began last, so that all circles are found, each of them from one wait.
 *
 * @returns a shortest circle: the waits that it stands behind, one behind the other, with itself as the last
 * @see K. M. Chandy, J. Misra, L. M. Haas, Distributed Deadlock Detection (ACM TOCS 1983): edge chasing
 */
export async function findCycle(
  reader: WaitReader,
  start: Pick<FoundWait, 'id' | 'record'>,
): Promise<readonly FoundWait[] | undefined> {
  const { holders } = start.record;
  const seen = new Set(holders);
  let ways: readonly Way[] = holders.map((holder) => ({ holder, waits: [] }));
  for (let step = 0; step < MOST_STEPS && ways.length > 0; step++) {
    const found = await Promise.all(ways.map(({ holder }) => reader.waitsOf(holder)));
    const next: Way[] = [];
    for (const [index, waitsOfHolder] of found.entries()) {
      for (const wait of waitsOfHolder) {
        const waits = [...ways[index].waits, wait];
        if (wait.id === start.id) return waits;
        if (!isBefore(wait, start)) continue;
        for (const holder of wait.record.holders) {
          if (seen.has(holder)) continue;
          seen.add(holder);
          next.push({ holder, waits });
        }
      }
    }
    ways = next.slice(0, MOST_HOLDERS);
  }
  return undefined;
}

/** The same waits as they are now; `undefined` when one of them is not there any more. */
export async function readAgain(
  backend: WaitBackend,
  cycle: readonly FoundWait[],
): Promise<readonly FoundWait[] | undefined> {
  const reader = new WaitReader(backend);
  const found = await Promise.all(cycle.map(({ holder }) => reader.waitsOf(holder)));
  const now = cycle.map(({ id }, i) => found[i].find((wait) => wait.id === id));
  return now.every((wait) => wait !== undefined) ? now : undefined;
}
