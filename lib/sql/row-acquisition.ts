import type { AcquireRequest } from '../backends/lock-backend.js';
import type { Moment, Runtime } from '../backends/runtime.js';
import type { SqlConnection } from './driver/sql-connection.js';
import type { LockServer, TokenRange } from './server/lock-server.js';
import type { ControlConnection } from './session/control-connection.js';
import type { HolderNotes } from './session/holder-notes.js';
import type { SessionPool } from './session/session-pool.js';
import type { SqlFailures } from './session/sql-failure.js';
import type { WaitingSessions } from './session/waiting-sessions.js';

/** What every acquisition of a backend uses. */
export interface AcquisitionTools {
  readonly server: LockServer;
  readonly control: ControlConnection;
  readonly notes: HolderNotes;
  readonly pool: SessionPool;
  readonly waiting: WaitingSessions;
  readonly failures: SqlFailures;
  readonly runtime: Runtime;
}

/** What one session has taken. */
export interface TakenRows {
  readonly connection: SqlConnection;
  readonly transaction: number;
  readonly tokens: readonly TokenRange[];
  readonly confirmed?: Moment;
}

/** How many pooled sessions in a row may turn out to have ended before the attempt fails. */
const STALE_SESSIONS = 3;

/** A session with an open transaction that has a row locked, or is about to. */
export class RowAcquisition {
  transaction = 0;
  /** The row with which the transaction began. */
  private first: { readonly key: string; readonly isLocked: boolean } | undefined;

  private constructor(
    private readonly tools: AcquisitionTools,
    readonly connection: SqlConnection,
    private readonly leaseTime: number,
    /** Before the statement was sent that began the lease. */
    readonly began: Moment,
  ) {}

  /**
   * Begins a transaction on a session of the pool, and tries the first row in the same trip; `undefined`: the caller
   * has left before it got a session.
   */
  static async begin(
    tools: AcquisitionTools,
    { key, leaseTime }: AcquireRequest,
    takeSession: () => Promise<SqlConnection | undefined>,
  ): Promise<RowAcquisition | undefined> {
    // The version and the tables are checked before anything is locked.
    await tools.control.open();
    for (let attempt = 1; ; attempt++) {
      const connection = await takeSession();
      if (connection === undefined) return undefined;
      try {
        const acquisition = new RowAcquisition(tools, connection, leaseTime, momentOf(tools.runtime));
        const locked = await tools.server.begin(connection, leaseTime, key);
        acquisition.transaction = locked?.transaction ?? 0;
        acquisition.first = { key, isLocked: locked !== undefined };
        return acquisition;
      } catch (error) {
        const isStale = connection.ended !== undefined;
        tools.pool.drop(connection);
        if (!isStale || attempt > STALE_SESSIONS) throw tools.failures.toBackendError(error);
      }
    }
  }

  /** Locks the row if it is free, making it if need be. */
  async tryRow(key: string): Promise<boolean> {
    const { control, server } = this.tools;
    const { first } = this;
    const isLocked = first?.key === key ? first.isLocked : await this.lock(() => server.tryRow(this.connection, key));
    if (isLocked) return true;
    if (await control.run((connection) => server.hasRow(connection, key))) return false;
    await control.run((connection) => server.makeRows(connection, key));
    return this.lock(() => server.tryRow(this.connection, key));
  }

  /** Waits until the row is locked, however long. */
  async waitForRow(key: string): Promise<void> {
    const { control, server, waiting } = this.tools;
    const wait = () => {
      const answered = waiting.watch(this.connection, this.leaseTime);
      return server.waitForRow(this.connection, key).finally(answered);
    };
    while (!(await this.lock(wait))) await control.run((connection) => server.makeRows(connection, key));
  }

  /** Notes the holder of a row that is locked, and gets its fencing token. */
  async note(request: AcquireRequest): Promise<TokenRange> {
    return noteHolder(this.tools, request, this.connection.id, this.transaction);
  }

  /** Restarts the lease. Any statement would do that. */
  async touch(): Promise<void> {
    await this.lock(async () => {
      await this.tools.server.touch(this.connection);
      return { transaction: this.transaction };
    });
  }

  /** Gives back all rows, and the session. */
  async undo(): Promise<void> {
    const { pool, server } = this.tools;
    try {
      await server.rollback(this.connection);
      pool.give(this.connection);
    } catch {
      this.abandon();
    }
  }

  /** The server gives back all rows when it notices that the connection has ended. */
  abandon(): void {
    this.tools.pool.drop(this.connection);
  }

  private async lock(statement: () => Promise<{ readonly transaction: number } | undefined>): Promise<boolean> {
    try {
      const locked = await statement();
      if (locked !== undefined) this.transaction = locked.transaction;
      return locked !== undefined;
    } catch (error) {
      this.abandon();
      throw this.tools.failures.toBackendError(error);
    }
  }
}

/** Writes who holds a lock into the state table. */
export function noteHolder(
  { notes }: AcquisitionTools,
  { key, type, owner, leaseTime, reserve }: Omit<AcquireRequest, 'waiterTimeout' | 'pastWaitingWriters'>,
  session: number,
  transaction: number,
): Promise<TokenRange> {
  const mode = type === 'write' ? 'write' : 'exclusive';
  return notes.write({ key, owner, mode, session, transaction, leaseTime, reserve });
}

export function momentOf(runtime: Runtime): Moment {
  return { monotonic: runtime.monotonic(), wall: runtime.wall() };
}
