import { BackendError, type Runtime } from '../../backend.js';
import { OWN_POOL } from '../driver/from-pool.js';
import { type Driver, SqlConnection } from '../driver/sql-connection.js';
import type { LockServer } from '../server/lock-server.js';
import type { SqlFailures } from './sql-failure.js';

/**
 * After this many milliseconds without a free session, the log warns, and callers are refused that do not wait, or that
 * already hold a lock and so keep a session from others.
 */
const PATIENCE = 1_000;
/** How long to wait for the answer to a statement that does not wait for a lock, in milliseconds. */
const STATEMENT_LIMIT = 2_000;

/** How long it may take to restore the settings of a session before it is closed, in milliseconds. */
const GOODBYE = 500;

/** A caller that wants a session. */
export interface SessionClaim {
  /** Called after each second in which all sessions, or all connections of a given pool, are in use. */
  onFull(error: BackendError): void;
}

interface Waiting {
  readonly resolve: (session: SqlConnection | undefined) => void;
  readonly reject: (error: BackendError) => void;
}

/**
 * The sessions of one process. Each of them holds locks, waits for one, or is idle. Callers that wait for a session are
 * served in order.
 */
export class SessionPool {
  private readonly open = new Set<SqlConnection>();
  private readonly idle: SqlConnection[] = [];
  private readonly waiting = new Map<SessionClaim, Waiting>();
  private connecting = 0;
  private closed = false;

  constructor(
    private readonly driver: Driver,
    private readonly server: LockServer,
    private readonly failures: SqlFailures,
    private readonly runtime: Runtime,
    private readonly most: number,
  ) {}

  /**
   * @returns a session; `undefined`: the claim was {@link withdraw}n
   * @throws BackendError
   */
  take(claim: SessionClaim): Promise<SqlConnection | undefined> {
    if (this.closed) return Promise.reject(this.wasClosed());
    const session = this.idle.pop();
    if (session !== undefined) return Promise.resolve(session);
    return new Promise((resolve, reject) => {
      const timer = this.complainLater(claim);
      const settled =
        <T>(settle: (value: T) => void) =>
        (value: T) => {
          timer.cancel();
          settle(value);
        };
      this.waiting.set(claim, { resolve: settled(resolve), reject: settled(reject) });
      this.openForWaiting();
    });
  }

  /**
   * Takes a session for a caller that does not wait.
   *
   * @throws BackendError when all sessions, or all connections of a given pool, are in use for {@link PATIENCE}
   */
  takeSoon(): Promise<SqlConnection | undefined> {
    return new Promise((resolve, reject) => {
      const claim = {
        onFull: (error: BackendError) => {
          reject(error);
          this.withdraw(claim);
        },
      };
      this.take(claim).then(resolve, reject);
    });
  }

  withdraw(claim: SessionClaim): void {
    const waiting = this.waiting.get(claim);
    this.waiting.delete(claim);
    waiting?.resolve(undefined);
  }

  /** Makes a session available again. */
  give(session: SqlConnection): void {
    if (session.ended !== undefined) return;
    if (this.closed) return void this.restoreAndClose(session);
    const [next] = this.waiting.keys();
    if (next === undefined) {
      this.idle.push(session);
      return;
    }
    const waiting = this.waiting.get(next);
    this.waiting.delete(next);
    waiting?.resolve(session);
  }

  /** Ends a session that must not be used any more. */
  drop(session: SqlConnection, why?: string): void {
    session.destroy(why);
  }

  /**
   * Closes all sessions except those for which `keeps` returns true. The server ends these when their leases end.
   */
  async close(keeps: (session: SqlConnection) => boolean): Promise<void> {
    this.closed = true;
    for (const waiting of this.waiting.values()) waiting.reject(this.wasClosed());
    this.waiting.clear();
    for (const session of [...this.open]) {
      if (keeps(session)) session.unref();
      else if (!this.idle.includes(session)) session.destroy();
    }
    await Promise.all(this.idle.splice(0).map((session) => this.restoreAndClose(session)));
  }

  private async restoreAndClose(session: SqlConnection): Promise<void> {
    try {
      await this.server.locks.restoreSession?.(session, GOODBYE);
      session.close();
    } catch {
      session.destroy();
    }
  }

  private get hasRoom(): boolean {
    return this.open.size + this.connecting < this.most;
  }

  private async connect(): Promise<SqlConnection> {
    this.connecting++;
    let session: SqlConnection | undefined;
    try {
      session = new SqlConnection(await this.runtime.detached(() => this.driver.connect()), this.runtime, {
        limit: STATEMENT_LIMIT,
      });
      session.identify(await this.server.identify(session));
      await this.server.locks.prepareSession(session);
      if (session.ended !== undefined) throw session.ended;
    } catch (error) {
      this.connecting--;
      session?.destroy();
      throw this.failures.toBackendError(error);
    }
    this.connecting--;
    const opened = session;
    this.open.add(opened);
    opened.onEnd(() => this.ended(opened));
    if (this.closed) {
      opened.close();
      throw this.wasClosed();
    }
    return opened;
  }

  private ended(session: SqlConnection): void {
    this.open.delete(session);
    const index = this.idle.indexOf(session);
    if (index >= 0) this.idle.splice(index, 1);
    this.openForWaiting();
  }

  /**
   * Opens a session if there is room for one and a caller waits for it. The callers stay in line meanwhile, because
   * another session may become free first, and a caller may leave.
   */
  private openForWaiting(): void {
    if (this.closed || !this.hasRoom || this.connecting >= this.waiting.size) return;
    this.connect().then(
      (session) => this.give(session),
      (error) => {
        const [first] = this.waiting.entries();
        if (first !== undefined) {
          const [claim, waiting] = first;
          this.waiting.delete(claim);
          waiting.reject(error);
        }
        this.openForWaiting();
      },
    );
  }

  private complainLater(claim: SessionClaim): { cancel(): void } {
    const complain = () => {
      timer = this.runtime.timer(PATIENCE, complain);
      const isFull = this.open.size >= this.most;
      if (isFull || this.driver.spare !== undefined) claim.onFull(isFull ? this.full() : this.poolUsedUp());
    };
    let timer = this.runtime.timer(PATIENCE, complain);
    return { cancel: () => timer.cancel() };
  }

  private poolUsedUp(): BackendError {
    const message = `${this.driver.description}: no connection of the pool is free or could be opened within ${PATIENCE} ms; ${this.open.size} of them are used for locks: ${OWN_POOL}`;
    return new BackendError(message, 'unavailable', 'refused');
  }

  private wasClosed(): BackendError {
    return new BackendError(`${this.driver.description} was closed`, 'unavailable', 'refused');
  }

  private full(): BackendError {
    const message = `${this.driver.description}: all ${this.most} connections of ${this.server.words.factory} hold a lock or wait for one: set connections to more than ${this.most}, or hold fewer locks at once`;
    return new BackendError(message, 'unavailable', 'refused');
  }
}
