import { type AcquireRequest, type Moment, momentOf, type Runtime } from '../backend.js';
import type { SqlConnection } from './driver/sql-connection.js';
import type { LockServer } from './server/lock-server.js';
import type { ControlConnection } from './session/control-connection.js';
import type { HolderNotes } from './session/holder-notes.js';
import type { SessionPool } from './session/session-pool.js';
import type { SilentSessions } from './session/silent-sessions.js';
import type { SqlFailures } from './session/sql-failure.js';
import type { NewHolder, TakenLock, TokenRange } from './session-locks/session-locks.js';

/** The parts of a backend that every acquisition uses. */
export interface AcquisitionTools {
  readonly server: LockServer;
  readonly control: ControlConnection;
  readonly notes: HolderNotes;
  readonly pool: SessionPool;
  readonly silent: SilentSessions;
  readonly failures: SqlFailures;
  readonly runtime: Runtime;
}

/** The locks that one session has taken. */
export interface TakenLocks {
  readonly connection: SqlConnection;
  readonly transaction: number;
  readonly tokens: readonly TokenRange[];
  readonly confirmed?: Moment;
}

/** The attempt fails if more than this number of pooled sessions in a row turn out to have ended. */
const STALE_SESSIONS = 3;

/** A session that takes locks. */
export class Acquisition {
  transaction = 0;
  /** The keys that it has taken. */
  readonly keys: string[] = [];
  /** The first lock. If it was not taken, somebody else holds it. */
  private first: { readonly key: string; readonly taken: TakenLock | undefined } | undefined;

  private constructor(
    private readonly tools: AcquisitionTools,
    readonly connection: SqlConnection,
    private readonly leaseTime: number,
    /** The moment before the statement that began the lease was sent. */
    readonly began: Moment,
  ) {}

  /**
   * Tries the first lock on a session of the pool. `undefined`: the caller left before it got a session.
   */
  static async begin(
    tools: AcquisitionTools,
    request: AcquireRequest,
    takeSession: () => Promise<SqlConnection | undefined>,
  ): Promise<Acquisition | undefined> {
    const { key, leaseTime } = request;
    // The version and the tables are checked before anything is locked.
    await tools.control.open();
    for (let attempt = 1; ; attempt++) {
      const connection = await takeSession();
      if (connection === undefined) return undefined;
      try {
        const acquisition = new Acquisition(tools, connection, leaseTime, momentOf(tools.runtime));
        const taken = await acquisition.takeFirst(request);
        acquisition.first = { key, taken };
        if (taken !== undefined) acquisition.keep(key, taken);
        return acquisition;
      } catch (error) {
        const isStale = connection.ended !== undefined;
        tools.pool.drop(connection);
        if (!isStale || attempt > STALE_SESSIONS) throw tools.failures.toBackendError(error);
      }
    }
  }

  /** Takes the first lock. The same statement records the holder, unless records share statements. */
  private takeFirst(request: AcquireRequest): Promise<TakenLock | undefined> {
    const { connection, leaseTime } = this;
    const { notes, server } = this.tools;
    const noted = notes.separately(() => server.locks.beginNoted?.(connection, holderOf(request, connection)));
    return noted ?? server.locks.begin(connection, request.key, leaseTime);
  }

  /** Takes the lock if it is free. */
  async tryLock(key: string): Promise<boolean> {
    const { locks } = this.tools.server;
    const { first, connection, leaseTime } = this;
    const attempt = () => this.take(key, () => locks.try(connection, key, leaseTime));
    if (first?.key === key ? first.taken !== undefined : await attempt()) return true;
    return (await this.provide(key)) && attempt();
  }

  /** Waits without a time limit until it has the lock or the caller has left. */
  async waitForLock(key: string, hasLeft: () => boolean): Promise<void> {
    const { server, silent } = this.tools;
    const { connection, leaseTime } = this;
    const wait = () => {
      const answered = silent.watch(connection, leaseTime);
      return server.locks.wait(connection, key, leaseTime).finally(answered);
    };
    while (!(hasLeft() || (await this.take(key, wait)))) await this.provide(key);
  }

  /** Records the holder of a lock, unless it is recorded already, and gets its fencing token. */
  async note(request: AcquireRequest): Promise<TokenRange> {
    const { first, tools, connection, transaction } = this;
    const noted = first?.key === request.key ? first.taken?.tokens : undefined;
    return noted ?? tools.notes.write({ ...holderOf(request, connection), transaction });
  }

  /** Restarts the lease, as any statement does. */
  async touch(): Promise<void> {
    await this.orAbandon(this.tools.server.touch(this.connection));
  }

  /** Releases all locks, and returns the session to the pool. */
  async undo(): Promise<void> {
    const { pool, server } = this.tools;
    try {
      await server.locks.undo(this.connection, this.keys);
      pool.give(this.connection);
    } catch {
      this.abandon();
    }
  }

  /** Ends the connection. The server releases all locks when it notices this. */
  abandon(): void {
    this.tools.pool.drop(this.connection);
  }

  private async take(key: string, statement: () => Promise<TakenLock | undefined>): Promise<boolean> {
    const taken = await this.orAbandon(statement());
    if (taken !== undefined) this.keep(key, taken);
    return taken !== undefined;
  }

  private keep(key: string, { transaction }: TakenLock): void {
    this.keys.push(key);
    this.transaction = transaction;
  }

  private provide(key: string): Promise<boolean> {
    const { control, server } = this.tools;
    return control.run(async (connection) => {
      const isMade = await server.locks.provide(connection, key);
      if (isMade) await server.makeState(connection, key);
      return isMade;
    });
  }

  /** A session whose statement failed may hold the lock. */
  private async orAbandon<T>(statement: Promise<T>): Promise<T> {
    try {
      return await statement;
    } catch (error) {
      this.abandon();
      throw this.tools.failures.toBackendError(error);
    }
  }
}

/** What the state table says about the holder of a lock. */
export function holderOf(
  { key, type, owner, leaseTime, reserve }: Omit<AcquireRequest, 'waiterTimeout'>,
  { id }: SqlConnection,
): NewHolder {
  return { key, owner, mode: type === 'write' ? 'write' : 'exclusive', session: id, leaseTime, reserve };
}
