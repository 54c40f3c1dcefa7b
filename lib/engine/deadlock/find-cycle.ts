import type { WaitBackend } from '../../backends/wait-backend.js';
import { type FoundWait, parseRecord } from './journal-record.js';
import { isBefore } from './victim-order.js';

/** The length of the longest cycle that is detected, in waits. */
export const MOST_STEPS = 16;
/** The maximum number of owners checked per step. */
const MOST_HOLDERS = 1_000;

/** An owner, and the chain of waits that leads to it. */
interface Path {
  readonly holder: string;
  readonly waits: readonly FoundWait[];
}

/** Reads the waits of owners, once per owner. */
export class WaitReader {
  /** Whether one of the waits that were read is for a lock that several hold by `permits`. */
  hasReadShared = false;
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
      this.hasReadShared ||= record?.shared !== undefined;
      return record === undefined ? [] : [{ holder, id, record }];
    });
  }
}

/**
 * Follows waits from holder to holder, starting at one wait and using only waits that come before it in the order of
 * {@link isBefore}, until it comes back to that wait. Every cycle has exactly one last wait, so every cycle is found
 * exactly once.
 *
 * @returns the waits of a shortest cycle. Each one waits for the owner of the next; the starting wait is the last.
 * @see K. M. Chandy, J. Misra, L. M. Haas, Distributed Deadlock Detection (ACM TOCS 1983): edge chasing
 */
export async function findCycle(
  reader: WaitReader,
  start: Pick<FoundWait, 'id' | 'record'>,
): Promise<readonly FoundWait[] | undefined> {
  const { holders } = start.record;
  const seen = new Set(holders);
  let paths: readonly Path[] = holders.map((holder) => ({ holder, waits: [] }));
  for (let step = 0; step < MOST_STEPS && paths.length > 0; step++) {
    const found = await Promise.all(paths.map(({ holder }) => reader.waitsOf(holder)));
    const next: Path[] = [];
    for (const [index, waitsOfHolder] of found.entries()) {
      for (const wait of waitsOfHolder) {
        const waits = [...paths[index].waits, wait];
        if (wait.id === start.id) return waits;
        if (!isBefore(wait, start)) continue;
        for (const holder of wait.record.holders) {
          if (seen.has(holder)) continue;
          seen.add(holder);
          next.push({ holder, waits });
        }
      }
    }
    paths = next.slice(0, MOST_HOLDERS);
  }
  return undefined;
}

/** Reads the same waits again. Those that have ended are `undefined`. */
export async function readAgain(
  backend: WaitBackend,
  waits: readonly FoundWait[],
): Promise<readonly (FoundWait | undefined)[]> {
  const reader = new WaitReader(backend);
  const found = await Promise.all(waits.map(({ holder }) => reader.waitsOf(holder)));
  return waits.map(({ id }, i) => found[i].find((wait) => wait.id === id));
}
