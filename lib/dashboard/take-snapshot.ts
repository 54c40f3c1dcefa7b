import type {
  InspectedOwner,
  InspectedPermit,
  ListedLock,
  ListedSynchronizer,
  LockClient,
  LockService,
  WaitingClient,
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
  const known = new Map(before?.locks.map((lock) => [lock.name, lock]));
  const found = new Map<string, BoardLock>();
  const synchronizers = new Map<string, BoardSynchronizer>();
  const results = new Map<string, BoardResult>();
  const knownSynchronizers = new Map(before?.synchronizers.map((each) => [each.name, each]));
  const kept = new Map(before?.results.map((result) => [result.name, result.keptUntil]));
  for (;;) {
    const now = Date.now();
    for (const lock of page.locks) found.set(lock.name, toBoardLock(lock, now, known.get(lock.name)));
    for (const each of page.synchronizers)
      synchronizers.set(each.name, toBoardSynchronizer(each, now, knownSynchronizers.get(each.name)));
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
  { name, type, owners, remainingTime, waiting, line, fencingToken }: ListedLock,
  now: number,
  before: BoardLock | undefined,
): BoardLock {
  const longest = line.reduce((most, { waitedFor = -1 }) => Math.max(most, waitedFor), -1);
  return {
    name,
    type,
    owners: owners.slice(0, MOST_SHOWN).map((owner) => toBoardOwner(owner, now, before)),
    ownerCount: owners.length,
    leaseEnds: endOf(remainingTime, now, before?.leaseEnds),
    token: fencingToken ?? null,
    waiting: Math.max(waiting, 0),
    waitsSince: longest < 0 ? null : steady(now - longest, before?.waitsSince),
    waiters: line.slice(0, MOST_SHOWN).map((waiter) => toBoardWaiter(waiter, now, before?.waiters ?? [])),
    waiterCount: line.length,
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
  before: BoardSynchronizer | undefined,
): BoardSynchronizer {
  const { name, type, permits, taken = 0, waiting } = synchronizer;
  return {
    name,
    type,
    state: synchronizerText(synchronizer),
    permits: permits.slice(0, MOST_SHOWN).map((permit) => toBoardPermit(permit, now, before)),
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
  const { clientId, application, host, pid, version, mine, since, held, waiting, longestWait, blockedFor } = client;
  const waitsSince = waiting > 0 ? steady(now - longestWait, seen?.waitsSince) : null;
  const blockedSince = blockedFor === undefined ? null : steady(now - blockedFor, seen?.blockedSince);
  const place = { clientId, application, host, pid, method: '' };
  return { ...place, version, mine, since, held, waiting, waitsSince, blockedSince };
}

function toBoardWaiter(
  { position, callers, waitedFor, client, redisson }: WaitingClient,
  now: number,
  before: readonly BoardWaiter[],
): BoardWaiter {
  const { application = '', host = '', pid = 0, method = '', group = '' } = client ?? {};
  const seen = before.find((other) => other.pid === pid && other.host === host);
  return {
    position: position ?? null,
    redisson: redisson === true,
    application,
    host,
    pid,
    method: method || group,
    waiters: callers ?? null,
    since: waitedFor === undefined ? null : steady(now - waitedFor, seen?.since),
  };
}

function endOf(remaining: number, now: number, before: number | null | undefined): number | null {
  return remaining < 0 ? null : steady(now + remaining, before);
}

/** A time that was computed from a duration. It is the previous value if it is the same moment. */
function steady(time: number | null, before: number | null | undefined): number | null {
  if (time === null || before === null || before === undefined) return time === null ? null : Math.round(time);
  return Math.abs(time - before) < JITTER ? before : Math.round(time);
}
