import { chunksOf } from '../backends/chunks.js';
import {
  type ClientRecord,
  hasLine,
  type LockDirectory,
  type LockState,
  type ResultState,
  type WaitRecord,
} from '../backends/lock-backend.js';
import { clientOf, isRedisson, isTicketOwner, servesLines } from '../backends/owner-ids.js';
import type { HeldPermit, SynchronizerState, SynchronizerType } from '../backends/synchronizer-state.js';
import type { ClientIdentity } from '../engine/describe-holder.js';
import { type HolderClient, holderIn } from '../engine/describe-holder.js';
import { LockConfigurationError, LockKeyError } from '../engine/errors.js';
import type { LockEngine } from '../engine/lock-engine.js';
import { isPermitOf, PermitHolders } from '../engine/synchronizers/permit-id.js';
import { checkOptions, type OptionTable, rule, wholeNumber } from '../engine/terms/option-table.js';
import { type LockClient, toLockClient } from './lock-client.js';
import { PROBE_NAME } from './service-health.js';

/** The result of `LockService.inspect`. @publicApi */
export interface LockInspection {
  readonly locked: boolean;
  /** If the name is that of a semaphore or latch, its type. Then `locked` is false, and there are no owners. */
  readonly type: LockState['mode'] | SynchronizerType;
  readonly owners: readonly InspectedOwner[];
  /**
   * How many callers wait for it. For a fair lock, this is exact. For other locks, it counts the callers of this
   * process and those in the records of other processes, which are up to ten seconds old. For semaphores and latches,
   * it counts only the callers of this process.
   */
  readonly waiting: number;
  /**
   * The processes that wait for it, in the order in which they get it. For a semaphore or latch, and on a quorum, it has
   * at most the process that you called. See {@link WaitingClient}.
   */
  readonly line: readonly WaitingClient[];
  /** The last fencing token, if this service holds the lock or the lock is a fenced one. */
  readonly fencingToken?: number;
  /** The state of a semaphore or latch. */
  readonly synchronizer?: SynchronizerInspection;
  /** The stored result of the single flight with this name, whether or not its lock is held. */
  readonly result?: ResultInspection;
}

/** The stored result of a single flight. Its value is never shown. @publicApi */
export interface ResultInspection {
  /** In bytes, as it is stored. */
  readonly size: number;
  /** How many milliseconds it is still kept. */
  readonly remainingTime: number;
}

/** A semaphore or latch. @publicApi */
export interface SynchronizerInspection {
  /**
   * `counter` is a number that may be a semaphore or a latch. The type is known if this library has created it or once
   * found too few permits in it, or if permits with a lease are held.
   */
  readonly type: SynchronizerType;
  /**
   * The available permits of a semaphore, or the remaining steps of a latch. It is negative if more permits were
   * removed than were available.
   */
  readonly count: number;
  /**
   * All permits, including those that are taken, or the initial count of a latch. Undefined if it is not known. For
   * permits without leases and for latches, it is the number that this library has set. It is wrong if Redisson has
   * changed the number since.
   */
  readonly total?: number;
  /** How many permits are taken. It is exact if they have leases. Otherwise it is computed from `total`. */
  readonly taken?: number;
  /** Up to 100 of the permits that are held with a lease, in the order in which their leases end. */
  readonly permits: readonly InspectedPermit[];
}

/** A permit that is held with a lease. @publicApi */
export interface InspectedPermit {
  /** The first 16 of the 32 digits of its id. They are not enough to release it. */
  readonly id: string;
  /** Whether the service that you called holds it. */
  readonly mine: boolean;
  /** Milliseconds until its lease ends unless renewed; −1: it has no end. */
  readonly remainingTime: number;
  /** Who holds it. Undefined if the client has no record or uses Redisson. */
  readonly client?: HolderClient;
}

/** Somebody who holds a lock. @publicApi */
export interface InspectedOwner {
  /**
   * `<clientId>:<n>`; of a Java process `<clientId>:<threadId>`; of a lock that was detached `<clientId>:t-<hash of its
   * ticket>`.
   */
  readonly owner: string;
  /** Whether it belongs to the service that you called. */
  readonly mine: boolean;
  /** Milliseconds until its lease ends unless renewed; −1: it has no end. */
  readonly remainingTime: number;
  /**
   * The client that holds the lock. Undefined if it has no record, because its process has ended, keeps the lock by
   * `holdAtLeast`, has not held a lock for a second yet, or uses a quorum or Redisson.
   */
  readonly client?: HolderClient;
  /** It has no record, and its id has the form that Redisson uses. */
  readonly redisson?: true;
  /** No process holds the lock. `client` has detached it, and it can be adopted until its lease ends. */
  readonly detached?: true;
}

/**
 * A process that waits for a lock, with one caller or more.
 *
 * ```ts
 * const { line } = await locks.inspect('order:42');
 * for (const { position, callers, client } of line) console.log(position, client?.application, callers);
 * ```
 *
 * @publicApi
 */
export interface WaitingClient {
  readonly clientId: string;
  /** Whether it is the service that you called. */
  readonly mine: boolean;
  /**
   * Its position among the processes that wait for a `reentrant`, `fenced` or `fair` lock: a release grants the lock to
   * 1. It is exact. Undefined if the backend keeps no order: of readers and writers, of single flights, of clients before
   * version 0.2, and of the process that holds the lock, which may hand it to its own callers first. They come last,
   * with the longest wait first, and are known only from their records.
   */
  readonly position?: number;
  /** How many of its callers wait. Undefined if its record does not mention the wait yet. */
  readonly callers?: number;
  /** How many milliseconds the first of its callers has waited. Undefined if its record does not mention the wait yet. */
  readonly waitedFor?: number;
  /** The client, with the group and method of its first caller. Undefined if it has no record: see `InspectedOwner`. */
  readonly client?: Omit<HolderClient, 'heldFor'>;
  /** It has no record, and its id has the form that Redisson uses. */
  readonly redisson?: true;
}

/** The owners that `LockService.forceRelease` removes. @publicApi */
export interface ForceReleaseOptions {
  /**
   * Takes the lock only from these owners, which `inspect` or `list` have returned. Default: from all owners.
   */
  readonly owners?: readonly string[] | undefined;
  /**
   * The `fencingToken` that was returned with `owners`. The owner of a Java process is a thread, which may have
   * acquired the lock again in the meantime. If the lock has a different token now, nothing is released. Only tokens of
   * `fenced` locks are compared.
   */
  readonly fencingToken?: number | undefined;
}

/** Which locks `LockService.list` lists. @publicApi */
export interface ListOptions {
  /**
   * A pattern for the names, as in Redis: `*`, `?`, `[abc]`, `\` before a character that is taken literally.
   * Default: all.
   */
  readonly match?: string;
  /**
   * The `cursor` of the previous page. Default: the first page. If the masters of a cluster have changed since the
   * previous page, `list` throws LockConfigurationError: begin again without a cursor.
   */
  readonly cursor?: string | undefined;
  /** About how many locks a page has, from 1 to 10,000. Default 100. */
  readonly count?: number;
}

/** One page of `LockService.list`. @publicApi */
export interface LockList {
  readonly locks: readonly ListedLock[];
  /**
   * The semaphores and latches that this library has created, or in which it once found too few permits. They are
   * listed whether or not permits are taken.
   */
  readonly synchronizers: readonly ListedSynchronizer[];
  /** The stored results of single flights. */
  readonly results: readonly ListedResult[];
  /** The cursor for the next page. Undefined on the last page. */
  readonly cursor: string | undefined;
}

/** A semaphore or latch. @publicApi */
export interface ListedSynchronizer extends SynchronizerInspection {
  /** Without the `keyPrefix`. */
  readonly name: string;
  /** How many callers of this process wait for it. */
  readonly waiting: number;
}

/** The stored result of a single flight. @publicApi */
export interface ListedResult extends ResultInspection {
  /** The name of the flight, without the `keyPrefix`. */
  readonly name: string;
}

/** A lock that is held. @publicApi */
export interface ListedLock {
  /** Without the `keyPrefix`. */
  readonly name: string;
  readonly type: Exclude<LockState['mode'], 'free'>;
  readonly owners: readonly InspectedOwner[];
  /** Milliseconds until the last of its leases ends unless renewed; −1: it has no end. */
  readonly remainingTime: number;
  /** As in {@link LockInspection.waiting}. */
  readonly waiting: number;
  /** As in {@link LockInspection.line}. */
  readonly line: readonly WaitingClient[];
  /** As in {@link LockInspection.fencingToken}. */
  readonly fencingToken?: number;
}

const DEFAULT_COUNT = 100;
const LARGEST_COUNT = 10_000;
const LIST_OPTIONS: OptionTable<ListOptions> = {
  match: rule('a pattern', (value) => typeof value === 'string' && value !== ''),
  cursor: rule('a string that list() returned', (value) => typeof value === 'string'),
  count: wholeNumber(1, LARGEST_COUNT),
};
/**
 * How long the records are reused for the next pages of a list, in milliseconds. If it took long to read them, they are
 * reused for {@link REST} times as long as that took.
 */
const FRESH = 1_000;
const REST = 4;
/** How many records are parsed in one turn of the event loop. */
const RECORDS_A_TURN = 200;
/** The message about a backend without a directory. */
const LIST_ELSEWHERE = 'cannot list locks; ask a service with a connection to one of its servers';
const NO_CLIENTS = 'keeps no records of clients; inspect(name) shows the owners of one lock';

/** The records of clients, and what they contain about locks. */
interface Records {
  readonly all: readonly ClientRecord[];
  readonly byClient: ReadonlyMap<string, ClientRecord>;
  readonly permitHolders: PermitHolders<ClientRecord>;
  /** The waits of other clients for each key. */
  readonly waits: ReadonlyMap<string, readonly WaitOfClient[]>;
}

interface WaitOfClient extends WaitRecord {
  readonly clientId: string;
}

const NO_RECORDS: Records = { all: [], byClient: new Map(), permitHolders: new PermitHolders(), waits: new Map() };
const NOBODY: readonly never[] = [];

/** Reads the locks and clients of a service's backend, for people and dashboards. */
export class LockView {
  private read: { freshUntil: number; readonly records: Promise<Records> } | undefined;

  constructor(private readonly engine: LockEngine) {}

  async inspect(name: string): Promise<LockInspection> {
    const [state, records, result] = await Promise.all([
      this.engine.inspector.inspect(name).catch((error: Error) => this.otherwise(name, error)),
      this.recordsIfAny(),
      this.resultIfAny(name),
    ]);
    if (!('mode' in state)) {
      const { name: _, waiting, ...synchronizer } = this.synchronizer(name, state, records);
      return { locked: false, type: synchronizer.type, owners: [], waiting, line: NOBODY, synchronizer };
    }
    return {
      locked: state.mode !== 'free',
      type: state.mode,
      owners: this.owners(name, state, records),
      waiting: this.waiting(name, state, records),
      line: this.line(name, state, records),
      ...this.token(name, state),
      ...(result !== undefined && { result: { size: result.size, remainingTime: result.remaining } }),
    };
  }

  async list(options: ListOptions = {}): Promise<LockList> {
    checkOptions(options, LIST_OPTIONS, 'list()');
    const { match = '*', cursor, count = DEFAULT_COUNT } = options;
    const { engine } = this;
    const { keyPrefix } = engine.settings;
    const directory = this.directory('list()', LIST_ELSEWHERE);
    const page = await engine.inspector.askBackend('list()', () => directory.list(keyPrefix, match, cursor, count));
    if (page === undefined)
      throw new LockConfigurationError(
        `list(): cursor '${String(cursor).slice(0, 80)}' is not one that list() of this service returned, or the masters of the cluster have changed since; leave it out to start again`,
      );
    const namesOf = (keys: readonly string[]) =>
      keys.map((key) => key.slice(keyPrefix.length)).filter((name) => name !== '' && name !== PROBE_NAME);
    const names = namesOf(page.keys);
    const others = namesOf(page.synchronizers ?? []);
    const withResults = namesOf(page.results ?? []);
    const [states, otherStates, results, records] = await Promise.all([
      Promise.all(names.map((name) => engine.inspector.inspect(name).catch(unlessNoLock))),
      Promise.all(others.map((name) => engine.inspector.inspectSynchronizer(name).catch(unlessNoLock))),
      Promise.all(withResults.map((name) => this.listedResult(name))),
      this.recordsIfAny(),
    ]);
    const locks = names.flatMap((name, n) => this.listed(name, states[n], records) ?? []);
    const synchronizers = others.flatMap((name, n) => {
      const state = otherStates[n];
      return state === undefined ? [] : this.synchronizer(name, state, records);
    });
    return { locks, synchronizers, results: results.flat(), cursor: page.cursor };
  }

  async clients(): Promise<readonly LockClient[]> {
    const { clientId, keyPrefix } = this.engine.settings;
    const { all } = await this.readRecords(this.directory('clients()', NO_CLIENTS));
    const clients: LockClient[] = [];
    for (const records of chunksOf(all, RECORDS_A_TURN)) {
      for (const record of records) clients.push(toLockClient(record, keyPrefix, clientId));
      if (records.length === RECORDS_A_TURN) await this.nextTurn();
    }
    return clients;
  }

  private listed(name: string, state: LockState | undefined, records: Records): ListedLock | undefined {
    if (state === undefined || state.mode === 'free') return undefined;
    const leases = state.owners.map(({ remaining }) => remaining);
    const remainingTime = leases.some((remaining) => remaining < 0) ? -1 : Math.max(...leases);
    const owners = this.owners(name, state, records);
    const waiting = this.waiting(name, state, records);
    const line = this.line(name, state, records);
    return { name, type: state.mode, owners, remainingTime, waiting, line, ...this.token(name, state) };
  }

  /** @returns an empty list if the result is no longer stored */
  private async listedResult(name: string): Promise<ListedResult[]> {
    const result = await this.resultIfAny(name);
    return result === undefined ? [] : [{ name, size: result.size, remainingTime: result.remaining }];
  }

  /** An error about a result must not prevent locks from being shown. */
  private resultIfAny(name: string): Promise<ResultState | undefined> {
    return this.engine.inspector.inspectResult(name).catch(() => undefined);
  }

  /** A name that is not that of a lock may be that of a semaphore or latch. */
  private async otherwise(name: string, error: Error): Promise<SynchronizerState> {
    const state = error instanceof LockKeyError ? await this.engine.inspector.inspectSynchronizer(name) : undefined;
    if (state === undefined) throw error;
    return state;
  }

  private synchronizer(name: string, state: SynchronizerState, records: Records): ListedSynchronizer {
    const { type, count, total, acquired } = state;
    const isLatch = type === 'count-down-latch';
    const taken =
      type === 'permit-expirable-semaphore' ? acquired : isLatch || total === undefined ? undefined : total - count;
    return {
      name,
      type,
      count,
      ...(total === undefined ? {} : { total }),
      ...(taken === undefined ? {} : { taken }),
      permits: state.permits.map((permit) => this.permit(permit, records)),
      waiting: this.engine.synchronizers.waiting(this.keyOf(name)),
    };
  }

  private permit({ id, remaining }: HeldPermit, records: Records): InspectedPermit {
    const { clientId } = this.engine.settings;
    const record = records.permitHolders.of(id);
    const client = record && { client: holderIn(record, id) };
    return { id, mine: isPermitOf(clientId, id), remainingTime: remaining, ...client };
  }

  private token(name: string, state: LockState): { readonly fencingToken?: number } {
    const held = this.engine.services.heldLocks(this.keyOf(name)).map(({ token }) => token);
    const fencingToken = state.token ?? (held.length > 0 ? Math.max(...held) : undefined);
    return fencingToken === undefined ? {} : { fencingToken };
  }

  private owners(name: string, { owners }: LockState, records: Records): InspectedOwner[] {
    return owners.map(({ owner, remaining }) => {
      const record = records.byClient.get(clientOf(owner));
      const client = this.engine.inspector.ownHolder(this.keyOf(name), owner) ?? (record && holderIn(record, owner));
      return {
        owner,
        mine: this.engine.isMine(owner) && !isTicketOwner(owner),
        remainingTime: remaining,
        ...(client === undefined ? unknownClient(owner, this.mayHaveRecords) : { client }),
        ...(isTicketOwner(owner) && { detached: true }),
      };
    });
  }

  private waiting(name: string, { queue }: LockState, records: Records): number {
    // A queue has each caller of a fair lock, also those of Redisson, and one place for each process of another lock.
    const others = records.waits.get(this.keyOf(name)) ?? NOBODY;
    return Math.max(queue.length, this.engine.waiting(name) + callersIn(others));
  }

  /** The processes in the backend's queue, followed by those of which only a record or this process knows. */
  private line(name: string, { queue, owners }: LockState, records: Records): readonly WaitingClient[] {
    const { clientId, backend } = this.engine.settings;
    const own = this.engine.waiting(name);
    const others = records.waits.get(this.keyOf(name)) ?? NOBODY;
    if (queue.length === 0 && own === 0 && others.length === 0) return NOBODY;
    const places = new Map<string, number>();
    for (const owner of queue) places.set(clientOf(owner), (places.get(clientOf(owner)) ?? 0) + 1);
    const line = [...places].map(([client, callers], n) => ({
      ...this.waitingClient(client, name, callers, records),
      position: n + 1,
    }));
    // Callers of the process that holds the lock wait there. It stands in line once the lock has left it.
    const holders = new Set(owners.map(({ owner }) => clientOf(owner)));
    const outside = new Set(own > 0 && !places.has(clientId) ? [clientId] : NOBODY);
    for (const { clientId: other, type } of others) {
      const standsInLine = hasLine(type) && backend.line !== undefined && servesLines(other) && !holders.has(other);
      // Who waits in a queue or a line has a place there. A client without one has left since it wrote its record.
      if (type !== 'fair' && !standsInLine && !places.has(other)) outside.add(other);
    }
    const last = [...outside].map((client) => this.waitingClient(client, name, 0, records));
    return [...line, ...last.sort((one, other) => (other.waitedFor ?? 0) - (one.waitedFor ?? 0))];
  }

  /** @param places how many places it has in the backend's queue: one for each caller of a fair lock */
  private waitingClient(clientId: string, name: string, places: number, records: Records): WaitingClient {
    const key = this.keyOf(name);
    const record = records.byClient.get(clientId);
    const waits = record?.waits.filter((wait) => wait.key === key) ?? NOBODY;
    const mine = clientId === this.engine.settings.clientId;
    const isCounted = places > 1 || isRedisson(clientId) || waits.some(({ type }) => type === 'fair');
    const callers = mine ? this.engine.waiting(name) : isCounted ? places : callersIn(waits);
    const identity = record ?? (mine ? this.engine.settings.identity : undefined);
    return {
      clientId,
      mine,
      ...(callers > 0 && { callers }),
      ...(waits.length > 0 && { waitedFor: Math.max(...waits.map(({ waitedFor }) => waitedFor)) }),
      ...(identity === undefined
        ? unknownClient(clientId, this.mayHaveRecords)
        : {
            client: { clientId, ...identityIn(identity), group: waits[0]?.group ?? '', method: waits[0]?.method ?? '' },
          }),
    };
  }

  /** Whether the backend keeps records of the clients of this library. */
  private get mayHaveRecords(): boolean {
    return this.engine.settings.backend.directory !== undefined;
  }

  private keyOf(name: string): string {
    return this.engine.settings.keyPrefix + name;
  }

  /** Locks are shown even if the clients' records cannot be read. */
  private recordsIfAny(): Promise<Records> {
    return this.records().catch(() => NO_RECORDS);
  }

  /** The records of all clients, possibly from the cache. Empty if the backend keeps no records. */
  private records(): Promise<Records> {
    const { backend, runtime } = this.engine.settings;
    const { directory } = backend;
    if (directory === undefined) return Promise.resolve(NO_RECORDS);
    if (this.read !== undefined && runtime.monotonic() < this.read.freshUntil) return this.read.records;
    return this.readRecords(directory);
  }

  private readRecords(directory: LockDirectory): Promise<Records> {
    const { runtime } = this.engine.settings;
    const started = runtime.monotonic();
    const records = this.engine.inspector
      .askBackend('clients()', () => directory.clients())
      .then((all) => this.toRecords(all));
    const read = { freshUntil: Infinity, records };
    this.read = read;
    records.then(
      () => {
        const now = runtime.monotonic();
        read.freshUntil = Math.max(started + FRESH, now + REST * (now - started));
      },
      () => {
        if (this.read === read) this.read = undefined;
      },
    );
    return records;
  }

  private async toRecords(all: readonly ClientRecord[]): Promise<Records> {
    const { clientId } = this.engine.settings;
    const byClient = new Map<string, ClientRecord>();
    const permitHolders = new PermitHolders<ClientRecord>();
    const waits = new Map<string, WaitOfClient[]>();
    for (const records of chunksOf(all, RECORDS_A_TURN)) {
      for (const record of records) {
        byClient.set(record.clientId, record);
        permitHolders.add(record);
        if (record.clientId === clientId) continue;
        for (const wait of record.waits) {
          const ofKey = waits.get(wait.key);
          if (ofKey === undefined) waits.set(wait.key, [{ ...wait, clientId: record.clientId }]);
          else ofKey.push({ ...wait, clientId: record.clientId });
        }
      }
      if (records.length === RECORDS_A_TURN) await this.nextTurn();
    }
    return { all, byClient, permitHolders, waits };
  }

  private nextTurn(): Promise<void> {
    return new Promise((resolve) => this.engine.settings.runtime.nextTurn(resolve));
  }

  private directory(method: string, refusal: string): LockDirectory {
    const { directory, description } = this.engine.settings.backend;
    if (directory !== undefined) return directory;
    throw new LockConfigurationError(`${method}: the backend (${description}) ${refusal}`);
  }
}

/** @param mayHaveRecords the backend keeps records of the clients of this library */
function unknownClient(owner: string, mayHaveRecords: boolean): Pick<InspectedOwner, 'redisson'> {
  return mayHaveRecords && isRedisson(owner) ? { redisson: true } : {};
}

function identityIn({ application, host, pid, version }: ClientIdentity): ClientIdentity {
  return { application, host, pid, version };
}

function callersIn(waits: readonly WaitRecord[]): number {
  return waits.reduce((sum, { waiters }) => sum + waiters, 0);
}

/** Undefined if the key of that name is not a lock. */
function unlessNoLock(error: Error): undefined {
  if (error.name !== 'LockKeyError') throw error;
}
