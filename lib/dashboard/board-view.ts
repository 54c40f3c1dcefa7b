import { type BoardQuery, sortLocks, textOf } from './board-query.js';
import type { BoardClient, BoardLock, BoardPlace, BoardSynchronizer, Snapshot } from './board-snapshot.js';
import type { TimeSlices } from './time-slices.js';

/** The page lists at most this many clients. */
const MOST_CLIENTS = 200;
/** The page lists at most this many results of single flights. */
const MOST_RESULTS = 500;
/** The page lists at most this many semaphores and latches. */
const MOST_SYNCHRONIZERS = 500;
const PAGE_SIZE = 50;
/** At most this many selections of a snapshot are cached, because a viewer can request any number of them. */
const MOST_SELECTIONS = 200;
/** The clock is read only once for this many locks. */
const STEP = 500;

/** A page of the locks that a query finds. */
interface Selection {
  readonly matching: number;
  readonly page: number;
  readonly pages: number;
  readonly rows: readonly BoardLock[];
}

/** The data for a query, as JSON texts. */
export interface BoardMessage {
  readonly seen: number;
  readonly parts: readonly Part[];
  /** The part `locks` without its rows. */
  readonly page: string;
  /** The name and the text of each row. */
  readonly rows: readonly (readonly [name: string, text: string])[];
}

interface Part {
  readonly name: string;
  readonly text: string;
  /** The text that is compared to find out whether the part has changed. Default: the part itself. */
  readonly steady?: string;
}

/** The data that does not come from the snapshot. */
export interface BoardSurroundings {
  readonly readOnly: boolean;
  readonly place: BoardPlace;
  readonly events: { readonly count: number; readonly text: string };
}

/** The view of one snapshot. Equal queries of several viewers are computed once, and long work is done in slices. */
export class BoardView {
  private readonly selections = new Map<string, Selection>();
  private readonly orders = new Map<string, readonly BoardLock[]>();
  private readonly searched = new Map<BoardLock, string>();
  private readonly rows = new Map<BoardLock, string>();
  private byName: ReadonlyMap<string, BoardLock> | undefined;
  private clients: string | undefined;
  private synchronizers: string | undefined;
  private results: string | undefined;
  private sums: { waiting: number; waitsSince: number | null } | undefined;

  constructor(
    readonly snapshot: Snapshot,
    private readonly slices: TimeSlices,
  ) {}

  async message(query: BoardQuery, { readOnly, place, events }: BoardSurroundings): Promise<BoardMessage> {
    const { at, outage } = this.snapshot;
    const { matching, page, pages, rows } = await this.select(query);
    const parts: Part[] = [
      { name: 'readOnly', text: String(readOnly) },
      { name: 'place', text: JSON.stringify(place) },
      { name: 'outage', text: JSON.stringify(outage) },
      this.summary(events.count),
      { name: 'synchronizers', text: this.synchronizersText() },
      { name: 'results', text: this.resultsText() },
      { name: 'clients', text: this.clientsText() },
      { name: 'events', text: events.text },
    ];
    // The opened lock; null: it is not held.
    if (query.lock !== '' && at > 0) parts.push({ name: 'lock', text: this.lockText(query.lock) });
    return {
      seen: at,
      parts,
      page: JSON.stringify({ matching, page, pages, size: PAGE_SIZE }),
      rows: rows.map((lock) => [lock.name, this.rowText(lock)] as const),
    };
  }

  private async select(query: BoardQuery): Promise<Selection> {
    const { search, sort, descending, page } = query;
    const key = JSON.stringify([search, sort, descending, page]);
    const known = this.selections.get(key);
    if (known !== undefined) return known;
    const ordered = this.ordered(query);
    const found = search === '' ? ordered : await this.find(search, ordered);
    const pages = Math.max(1, Math.ceil(found.length / PAGE_SIZE));
    const shown = Math.min(page, pages);
    const rows = found.slice((shown - 1) * PAGE_SIZE, shown * PAGE_SIZE);
    const selection = { matching: found.length, page: shown, pages, rows };
    if (this.selections.size >= MOST_SELECTIONS) this.selections.clear();
    this.selections.set(key, selection);
    return selection;
  }

  private ordered({ sort, descending }: BoardQuery): readonly BoardLock[] {
    const key = `${sort} ${descending}`;
    const ordered = this.orders.get(key) ?? sortLocks(this.snapshot.locks, sort, descending);
    this.orders.set(key, ordered);
    return ordered;
  }

  private async find(search: string, locks: readonly BoardLock[]): Promise<readonly BoardLock[]> {
    const found: BoardLock[] = [];
    for (const [n, lock] of locks.entries()) {
      if (n % STEP === 0 && this.slices.isOver) await this.slices.next();
      if (this.searchedText(lock).includes(search)) found.push(lock);
    }
    return found;
  }

  private searchedText(lock: BoardLock): string {
    const text = this.searched.get(lock) ?? textOf(lock);
    this.searched.set(lock, text);
    return text;
  }

  private rowText(lock: BoardLock): string {
    const text = this.rows.get(lock) ?? JSON.stringify(lock);
    this.rows.set(lock, text);
    return text;
  }

  private lockText(name: string): string {
    this.byName ??= new Map(this.snapshot.locks.map((lock) => [lock.name, lock]));
    const lock = this.byName.get(name);
    return lock === undefined ? 'null' : this.rowText(lock);
  }

  private clientsText(): string {
    this.clients ??= JSON.stringify(blockedFirst(this.snapshot.clients).slice(0, MOST_CLIENTS));
    return this.clients;
  }

  private synchronizersText(): string {
    this.synchronizers ??= JSON.stringify(
      [...this.snapshot.synchronizers].sort(byWaiting).slice(0, MOST_SYNCHRONIZERS),
    );
    return this.synchronizers;
  }

  private resultsText(): string {
    const { results } = this.snapshot;
    this.results ??= JSON.stringify(
      [...results].sort((one, other) => (one.name < other.name ? -1 : 1)).slice(0, MOST_RESULTS),
    );
    return this.results;
  }

  private summary(events: number): Part {
    const { locks, synchronizers, results, clients, incomplete, took } = this.snapshot;
    this.sums ??= sumsOf(locks);
    const steady = {
      held: locks.length,
      ...this.sums,
      synchronizers: synchronizers.length,
      results: results.length,
      clients: clients.length,
      events,
      incomplete,
    };
    return { name: 'summary', text: JSON.stringify({ ...steady, took }), steady: JSON.stringify(steady) };
  }
}

function sumsOf(locks: readonly BoardLock[]): { waiting: number; waitsSince: number | null } {
  let waiting = 0;
  let waitsSince: number | null = null;
  for (const lock of locks) {
    waiting += lock.waiting;
    if (lock.waitsSince !== null && (waitsSince === null || lock.waitsSince < waitsSince)) waitsSince = lock.waitsSince;
  }
  return { waiting, waitsSince };
}

/** Those whose event loop is blocked come first, then those with the longest waits. */
function blockedFirst(clients: readonly BoardClient[]): BoardClient[] {
  return [...clients].sort(
    (one, other) =>
      (one.blockedSince ?? Infinity) - (other.blockedSince ?? Infinity) ||
      (one.waitsSince ?? Infinity) - (other.waitsSince ?? Infinity) ||
      other.held - one.held,
  );
}

/** Locks with waiters first, then by name. */
function byWaiting(one: BoardSynchronizer, other: BoardSynchronizer): number {
  return other.waiting - one.waiting || (one.name < other.name ? -1 : 1);
}
