import type { PossibleDeadlock } from './confirm-deadlock.js';
import { MOST_STEPS, type WaitReader } from './find-cycle.js';
import type { FoundWait, JournalRecord } from './journal-record.js';
import { isBefore } from './victim-order.js';

/** How many owners are followed at most, and how many waits of theirs. Callers beyond that count as running. */
const MOST_OWNERS = 1_000;
const MOST_WAITS = 2_000;

type Start = Pick<FoundWait, 'id' | 'record'>;

/**
 * Finds deadlocks through locks that several hold by `permits`. A wait for such a lock is blocked if at least as many
 * of its holders are as it allows, since none of them makes room. To be called after {@link findCycle}, with the same
 * reader.
 *
 * Like {@link findCycle}, it uses only the starting wait and those that come before it. If there is a deadlock without
 * the starting wait, nothing is found until that one has been ended. So exactly one wait is refused for each deadlock:
 * the one that completes it.
 *
 * @see G. Bracha, S. Toueg, Distributed Deadlock Detection (Distributed Computing 1987): the k-out-of-n model
 */
export async function findKnot(reader: WaitReader, start: Start): Promise<PossibleDeadlock | undefined> {
  if (start.record.shared === undefined && !reader.hasReadShared) return undefined;
  const found = await reachable(reader, start);
  if (!closesKnot(found, start)) return undefined;
  const blocked = blockedOf(found);
  const isStart = ({ id }: FoundWait) => id === start.id;
  const waits = [...blocked].sort((one, other) => Number(isStart(one)) - Number(isStart(other)));
  const cycle = cycleIn(waits, start);
  const isComplete = (now: readonly FoundWait[]) => cycle.every(({ id }) => now.some((wait) => wait.id === id));
  return { waits, cycle, isDeadlock: (now) => isComplete(now) && closesKnot(now, start) };
}

/** Whether there is a deadlock among these waits, and none without the starting one. */
function closesKnot(waits: readonly FoundWait[], { id }: Start): boolean {
  const blocked = blockedOf(waits);
  return blocked.some((wait) => wait.id === id) && blockedOf(blocked.filter((wait) => wait.id !== id)).length === 0;
}

/** The waits to which the starting one leads, with the owners under which they were found. */
async function reachable(reader: WaitReader, start: Start): Promise<readonly FoundWait[]> {
  const found = new Map<string, Promise<readonly FoundWait[]>>();
  let room = MOST_WAITS;
  const ask = async (owner: string): Promise<readonly FoundWait[]> => {
    const waits = await reader.waitsOf(owner);
    const usable = waits.filter((wait) => wait.id === start.id || isBefore(wait, start)).slice(0, room);
    room -= usable.length;
    return usable;
  };
  const waitsOf = (owner: string): Promise<readonly FoundWait[]> | readonly FoundWait[] => {
    if (!found.has(owner) && found.size < MOST_OWNERS) found.set(owner, ask(owner));
    return found.get(owner) ?? [];
  };
  const all = async (owners: readonly string[]) => (await Promise.all(owners.map(waitsOf))).flat();
  const follow = async ({ holders, shared }: JournalRecord) => {
    const waits = await all(holders);
    if (shared === undefined) return waits;
    // If none of these waits, there will be room. So a wait that is not blocked costs one reading more, for most locks.
    const enough = Math.max(0, shared.holders.length - shared.permits + 1);
    const first = await all(shared.holders.slice(0, enough));
    const others = first.length > 0 ? await all(shared.holders.slice(enough)) : [];
    return [...waits, ...first, ...others];
  };
  const followed = new Set([start.id]);
  let next: readonly FoundWait[] = [{ holder: '', ...start }];
  for (let step = 0; step < MOST_STEPS && next.length > 0; step++) {
    const waits = (await Promise.all(next.map(({ record }) => follow(record)))).flat();
    next = waits.filter(({ id }) => !followed.has(id) && followed.add(id));
  }
  return all([...found.keys()]);
}

/** Those of these waits that can end only after others of them: the largest such set. */
function blockedOf(waits: readonly FoundWait[]): readonly FoundWait[] {
  let blocked = waits;
  for (;;) {
    const owners = new Set(blocked.map(({ holder }) => holder));
    const still = blocked.filter(({ record }) => isBlocked(record, owners));
    if (still.length === blocked.length) return blocked;
    blocked = still;
  }
}

function isBlocked({ holders, shared }: JournalRecord, owners: ReadonlySet<string>): boolean {
  if (holders.some((holder) => owners.has(holder))) return true;
  return shared !== undefined && shared.holders.filter((holder) => owners.has(holder)).length >= shared.permits;
}

/** A shortest way from the starting wait back to it. */
function cycleIn(knot: readonly FoundWait[], start: Start): readonly FoundWait[] {
  const seen = new Set<FoundWait>();
  let paths: (readonly FoundWait[])[] = [[]];
  while (paths.length > 0) {
    const longer: (readonly FoundWait[])[] = [];
    for (const path of paths) {
      const { holders, shared } = (path.at(-1) ?? start).record;
      const after = new Set([...holders, ...(shared?.holders ?? [])]);
      for (const wait of knot) {
        if (seen.has(wait) || !after.has(wait.holder)) continue;
        if (wait.id === start.id) return [...path, wait];
        seen.add(wait);
        longer.push([...path, wait]);
      }
    }
    paths = longer;
  }
  return [];
}
