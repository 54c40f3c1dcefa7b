import type { BoardEvent, BoardSynchronizer, Snapshot } from './board-lock.js';
import { type BoardQuery, selectLocks } from './board-query.js';

/** Most clients that the page lists. */
const MOST_CLIENTS = 200;
/** Most semaphores and latches that the page lists. */
const MOST_SYNCHRONIZERS = 500;

/** What the page is sent: all that it shows for a query. */
export function boardMessage(snapshot: Snapshot, events: readonly BoardEvent[], query: BoardQuery, readOnly: boolean) {
  const { locks, synchronizers, clients, at, took, incomplete, outage } = snapshot;
  let waiting = 0;
  let waitsSince: number | null = null;
  for (const lock of locks) {
    waiting += lock.waiting;
    if (lock.waitsSince !== null && (waitsSince === null || lock.waitsSince < waitsSince)) waitsSince = lock.waitsSince;
  }
  const longest = [...clients].sort(
    (one, other) => (one.waitsSince ?? Infinity) - (other.waitsSince ?? Infinity) || other.held - one.held,
  );
  return {
    now: Date.now(),
    seen: at,
    readOnly,
    outage,
    summary: {
      held: locks.length,
      waiting,
      waitsSince,
      synchronizers: synchronizers.length,
      clients: clients.length,
      events: events.length,
      incomplete,
      took,
    },
    locks: selectLocks(locks, query),
    /** The one that is looked at; null: it is not held. */
    ...(query.lock === '' || at === 0 ? {} : { lock: locks.find(({ name }) => name === query.lock) ?? null }),
    synchronizers: [...synchronizers].sort(byWaiting).slice(0, MOST_SYNCHRONIZERS),
    clients: longest.slice(0, MOST_CLIENTS),
    events,
  };
}

/** Those with waiters first, then by name. */
function byWaiting(one: BoardSynchronizer, other: BoardSynchronizer): number {
  return other.waiting - one.waiting || (one.name < other.name ? -1 : 1);
}

type Message = ReturnType<typeof boardMessage>;

/** Makes updates for one viewer: what has not changed since the last one is left out, and of a row that is the same only its name is sent. */
export class BoardUpdates {
  private parts = new Map<string, string>();
  private rows = new Map<string, string>();

  next({ locks, now, seen, summary, ...others }: Message): string {
    const { took: _, ...steady } = summary;
    const parts = Object.entries({ ...others, summary: steady })
      .filter(([part, value]) => this.isNew(part, JSON.stringify(value)))
      .map(([part, value]) => [part, part === 'summary' ? summary : value]);
    const rows = new Map(locks.rows.map((row) => [row.name, JSON.stringify(row)]));
    const shown = locks.rows.map((row) => (this.rows.get(row.name) === rows.get(row.name) ? row.name : row));
    this.rows = rows;
    const page = { ...locks, rows: shown };
    const update = { now, seen, ...Object.fromEntries(parts) };
    return JSON.stringify(this.isNew('locks', JSON.stringify(page)) ? { ...update, locks: page } : update);
  }

  private isNew(part: string, text: string): boolean {
    if (this.parts.get(part) === text) return false;
    this.parts.set(part, text);
    return true;
  }
}
