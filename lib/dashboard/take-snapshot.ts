import type {
  InspectedOwner,
  InspectedPermit,
  ListedLock,
  ListedSynchronizer,
  LockClient,
  LockService,
} from '../core.js';
import { sizeText, synchronizerText } from '../engine/terms/state-text.js';
import type {
  BoardClient,
  BoardLock,
  BoardOwner,
  BoardPermit,
  BoardResult,
  BoardSynchronizer,
  BoardWaiter,
  Snapshot,
} from './board-snapshot.js';
import { TimeSlices } from './time-slices.js';

/**
 * The locks of a page are inspected together. The page is short, so that acquisitions do not queue behind many
 * commands.
 */
const PAGE = 250;
const MOST_LOCKS = 20_000;
const MOST_SHOWN = 5;
/**
 * Times that differ by less than this count as the same moment. They differ only because they were read with different
 * delays.
 */
const JITTER = 1_500;

/** @param before the last snapshot, whose times are kept if nothing has happened */
export async function takeSnapshot(locks: LockService, before: Snapshot | undefined): Promise<Snapshot> {
  const started = Date.now();
  // If the backend supports neither, the error is about the list.
  let [page, clients] = await Promise.all([locks.list({ count: PAGE }), locks.clients()]);
  const slices = new TimeSlices();
  const waits = await waitsByLock(clients, Date.now(), slices);
  const known = new Map(before?.locks.map((lock) => [lock.name, lock]));
  const found = new Map<string, BoardLock>();
  const synchronizers = new Map<string, BoardSynchronizer>();
  const results = new Map<string, BoardResult>();
  const kept = new Map(before?.results.map((result) => [result.name, result.keptUntil]));
  for (;;) {
    const now = Date.now();
    for (const lock of page.locks)
      found.set(lock.name, toBoardLock(lock, waits.get(lock.name), now, known.get(lock.name)));
    for (const each of page.synchronizers) synchronizers.set(each.name, toBoardSynchronizer(each, now, before));
    for (const { name, size, remainingTime } of page.results)
      results.set(name, { name, size: sizeText(size), keptUntil: endOf(remainingTime, now, kept.get(name)) });
    const { cursor } = page;
    if (cursor === undefined || found.size + synchronizers.size + results.size >= MOST_LOCKS) break;
    page = await locks.list({ cursor, count: PAGE });
  }
  const at = Date.now();
  const seen = new Map(before?.clients.map((client) => [client.clientId, client]));
  const boardClients: BoardClient[] = [];
  for (const client of clients) {
    if (slices.isOver) await slices.next();
    boardClients.push(toBoardClient(client, at, seen.get(client.clientId)));
  }
  return {
    at,
    took: at - started,
    locks: [...found.values()],
    synchronizers: [...synchronizers.values()],
    results: [...results.values()],
    clients: boardClients,
    incomplete: page.cursor !== undefined,
    outage: null,
  };
}

function toBoardLock(
  { name, type, owners, remainingTime, waiting, fencingToken }: ListedLock,
  waiters: readonly BoardWaiter[] = [],
  now: number,
  before: BoardLock | undefined,
): BoardLock {
  const oldest = waiters.length === 0 ? null : Math.min(...waiters.map(({ since }) => since));
  return {
    name,
    type,
    owners: owners.slice(0, MOST_SHOWN).map((owner) => toBoardOwner(owner, now, before)),
    ownerCount: owners.length,
    leaseEnds: endOf(remainingTime, now, before?.leaseEnds),
    token: fencingToken ?? null,
    waiting: Math.max(waiting, 0),
    waitsSince: waiting > 0 ? steady(oldest, before?.waitsSince) : null,
    waiters:
      waiting > 0 ? waiters.slice(0, MOST_SHOWN).map((waiter, n) => steadyWaiter(waiter, before?.waiters[n])) : [],
  };
}

function toBoardOwner(
  { owner, redisson, detached, remainingTime, client }: InspectedOwner,
  now: number,
  before: BoardLock | undefined,
): BoardOwner {
  const seen = before?.owners.find((other) => other.owner === owner);
  const since = client?.heldFor === undefined ? undefined : now - client.heldFor;
  return {
    owner,
    redisson: redisson === true,
    detached: detached === true,
    application: client?.application ?? '',
    host: client?.host ?? '',
    pid: client?.pid ?? 0,
    method: client?.method || client?.group || seen?.method || '',
    since: since === undefined ? (seen?.since ?? now) : (steady(since, seen?.since) as number),
    atLeast: since === undefined && (seen?.atLeast ?? true),
    leaseEnds: endOf(remainingTime, now, seen?.leaseEnds),
  };
}

function toBoardSynchronizer(
  synchronizer: ListedSynchronizer,
  now: number,
  before: Snapshot | undefined,
): BoardSynchronizer {
  const { name, type, permits, taken = 0, waiting } = synchronizer;
  const seen = permits.length === 0 ? undefined : before?.synchronizers.find((other) => other.name === name);
  return {
    name,
    type,
    state: synchronizerText(synchronizer),
    permits: permits.slice(0, MOST_SHOWN).map((permit) => toBoardPermit(permit, now, seen)),
    permitCount: permits.length === 0 ? 0 : taken,
    waiting,
  };
}

function toBoardPermit(
  { id, remainingTime, client }: InspectedPermit,
  now: number,
  before: BoardSynchronizer | undefined,
): BoardPermit {
  const seen = before?.permits.find((other) => other.id === id);
  const { application = '', host = '', pid = 0 } = client ?? {};
  return { id, application, host, pid, method: '', leaseEnds: endOf(remainingTime, now, seen?.leaseEnds) };
}

function toBoardClient(client: LockClient, now: number, seen: BoardClient | undefined): BoardClient {
  const { clientId, application, host, pid, version, mine, since, held, waiting, longestWait } = client;
  const waitsSince = waiting > 0 ? steady(now - longestWait, seen?.waitsSince) : null;
  return { clientId, application, host, pid, version, mine, since, held, waiting, waitsSince, method: '' };
}

/** The clients that wait for each lock, the longest wait first. */
async function waitsByLock(
  clients: readonly LockClient[],
  now: number,
  slices: TimeSlices,
): Promise<ReadonlyMap<string, BoardWaiter[]>> {
  const waits = new Map<string, BoardWaiter[]>();
  for (const { application, host, pid, waits: ofClient } of clients) {
    if (slices.isOver) await slices.next();
    for (const { name, group, method, waiters, waitedFor } of ofClient) {
      const ofLock = waits.get(name) ?? [];
      ofLock.push({ application, host, pid, method: method || group, waiters, since: now - waitedFor });
      waits.set(name, ofLock);
    }
  }
  for (const ofLock of waits.values()) ofLock.sort((one, other) => one.since - other.since);
  return waits;
}

function steadyWaiter(waiter: BoardWaiter, before: BoardWaiter | undefined): BoardWaiter {
  if (before === undefined || before.pid !== waiter.pid || before.host !== waiter.host) return waiter;
  return { ...waiter, since: steady(waiter.since, before.since) as number };
}

function endOf(remaining: number, now: number, before: number | null | undefined): number | null {
  return remaining < 0 ? null : steady(now + remaining, before);
}

/** A time that was computed from a duration. It is the previous value if it is the same moment. */
function steady(time: number | null, before: number | null | undefined): number | null {
  if (time === null || before === null || before === undefined) return time === null ? null : Math.round(time);
  return Math.abs(time - before) < JITTER ? before : Math.round(time);
}
