import { type BackendError, type Runtime, SingleNodeWatch } from '../../backend.js';
import { type Driver, NotSent, SqlConnection } from '../driver/sql-connection.js';
import { asScript } from '../server/create-tables.js';
import type { LockServer } from '../server/lock-server.js';
import { refuseSharedSessions } from './pooler-check.js';
import { isPermanent, type SqlFailures } from './sql-failure.js';

/** How often to retry creating the tables while other processes create them at the same time. */
const CREATE_ATTEMPTS = 5;
/**
 * More than a statement of a session gets, because an unanswered statement ends the connection for all acquisitions of
 * the process.
 */
const STATEMENT_LIMIT = 5_000;
/** How long it may take to restore the settings before the connection is closed, in milliseconds. */
const GOODBYE = 500;
/** How often work is repeated if the connection ended before the work was sent. */
const ATTEMPTS = 3;
/** The maximum number of connections. The second one is for independent statements. */
const LANES = 2;
/** The shortest time between two attempts to open a further connection, in milliseconds. */
const WIDEN_AGAIN = 1_000;

/**
 * The connection for all statements in autocommit, which create rows, issue tokens, read locks and cancel waits. It is
 * opened when it is first used, and again after it has ended. Each time, the server's version and the tables are
 * checked. A second connection is opened when independent statements would wait for each other. It ends together with
 * the first one, because after a failover the first one may connect to another server.
 */
export class ControlConnection {
  /** Why the connection could not be opened. */
  error: Error | undefined;
  readonly watch: SingleNodeWatch;
  private current: Promise<SqlConnection> | undefined;
  private opened: SqlConnection | undefined;
  private readonly others: SqlConnection[] = [];
  /** When {@link widen} may try again, by the monotonic clock. */
  private widenAfter = 0;
  private closed = false;
  /** True: it was checked that no pooler shares sessions between connections. */
  private hasOwnSessions = false;

  constructor(
    private readonly driver: Driver,
    private readonly server: LockServer,
    private readonly failures: SqlFailures,
    private readonly runtime: Runtime,
    private readonly createTable: boolean,
  ) {
    const ping = () => this.run((connection) => server.touch(connection));
    this.watch = new SingleNodeWatch(driver.description, runtime, ping);
  }

  /**
   * Runs statements on the connection. If one of them was not sent because an earlier statement ended the connection,
   * the work is repeated on the next connection. So the earlier statements of the work must be safe to execute twice.
   *
   * @throws BackendError
   */
  run<T>(work: (connection: SqlConnection) => Promise<T>): Promise<T> {
    return this.watch.health.observe(this.runUnobserved(work), true);
  }

  /** The number of connections that {@link runBeside} can use. */
  get lanes(): number {
    return 1 + this.others.length;
  }

  /**
   * Like {@link run}, on the first connection (0) or on another one.
   *
   * @throws BackendError
   */
  runBeside<T>(lane: number, work: (connection: SqlConnection) => Promise<T>): Promise<T> {
    const connection = this.others[lane - 1];
    if (connection === undefined || connection.ended !== undefined) return this.run(work);
    const answer = work(connection).catch((error) => {
      if (error instanceof NotSent) return this.runUnobserved(work);
      throw this.failures.toBackendError(error);
    });
    return this.watch.health.observe(answer, true);
  }

  /** Opens another connection in the background, unless the maximum is reached. */
  widen(): void {
    const most = Math.min(LANES, this.driver.spare ?? LANES);
    const now = this.runtime.monotonic();
    if (this.lanes >= most || now < this.widenAfter || this.closed) return;
    this.widenAfter = Number.POSITIVE_INFINITY;
    this.runtime
      .detached(() => this.connectAnother())
      .catch(() => {}) // then the first one is used for everything
      .finally(() => {
        this.widenAfter = this.runtime.monotonic() + WIDEN_AGAIN;
      });
  }

  toBackendError(error: unknown): BackendError {
    return this.failures.toBackendError(error);
  }

  open(): Promise<SqlConnection> {
    this.current ??= this.watch.health.observe(
      this.runtime.detached(() => this.connect()),
      true,
    );
    return this.current;
  }

  async close(): Promise<void> {
    this.closed = true;
    // A connection that is still being opened is not awaited. It is closed when it is open.
    await Promise.all(this.others.map((other) => this.restoreAndClose(other)));
    if (this.opened !== undefined) await this.restoreAndClose(this.opened);
  }

  private async restoreAndClose(connection: SqlConnection): Promise<void> {
    try {
      await this.server.restoreControl?.(connection, GOODBYE);
      connection.close();
    } catch {
      connection.destroy();
    }
  }

  private async runUnobserved<T>(work: (connection: SqlConnection) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const connection = await this.open();
      try {
        return await work(connection);
      } catch (error) {
        if (!(error instanceof NotSent) || attempt === ATTEMPTS || this.closed)
          throw this.failures.toBackendError(error);
      }
    }
  }

  private async connect(): Promise<SqlConnection> {
    let connection: SqlConnection | undefined;
    try {
      connection = await this.connectOnce();
      const opened = connection;
      await this.server.checkServer(opened);
      opened.identify(await this.server.identify(opened));
      if (!this.hasOwnSessions) await refuseSharedSessions(opened, this.server, () => this.connectOnce());
      this.hasOwnSessions = true;
      await this.server.prepareControl(opened);
      await this.provideTables(opened);
      await this.server.prepareTokens(opened);
      opened.onEnd(() => {
        this.current = undefined;
        this.opened = undefined;
        for (const other of [...this.others]) other.destroy();
      });
      if (opened.ended !== undefined) throw opened.ended;
      if (this.closed) await this.restoreAndClose(opened);
      else this.opened = opened;
      this.error = undefined;
      return opened;
    } catch (error) {
      this.current = undefined;
      connection?.destroy();
      const failure = this.failures.toBackendError(error);
      this.error = failure;
      throw failure;
    }
  }

  private async connectAnother(): Promise<void> {
    const first = await this.open();
    const connection = await this.connectOnce();
    try {
      await this.server.prepareControl(connection);
      await this.server.prepareTokens(connection);
      if (connection.ended !== undefined || first.ended !== undefined || this.closed) throw new Error('it is too late');
    } catch (error) {
      connection.destroy();
      throw error;
    }
    this.others.push(connection);
    connection.onEnd(() => this.others.splice(this.others.indexOf(connection), 1));
  }

  private async connectOnce(): Promise<SqlConnection> {
    return new SqlConnection(await this.driver.connect(), this.runtime, {
      limit: STATEMENT_LIMIT,
      endsWhenSilent: true,
    });
  }

  /** If the tables exist, the user needs no permission to create them. */
  private async provideTables(connection: SqlConnection): Promise<void> {
    if (this.createTable) {
      const areThere = await this.server.checkTables(connection).then(
        () => true,
        () => false,
      );
      if (areThere) return;
      await this.explained(this.createTables(connection));
    }
    await this.explained(this.server.checkTables(connection));
  }

  /** Two processes that create one table at the same time may get an error despite IF NOT EXISTS. */
  private async createTables(connection: SqlConnection): Promise<void> {
    for (const statement of this.server.tableStatements) {
      for (let attempt = 1; ; attempt++) {
        try {
          await connection.run(statement, undefined, 10_000);
          break;
        } catch (error) {
          if (attempt === CREATE_ATTEMPTS || !this.server.isCreatedMeanwhile(error)) throw error;
        }
      }
    }
  }

  /** Adds the required tables and permissions to errors. */
  private async explained(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      if (!isPermanent(error)) throw error;
      const hint = `. ${this.server.words.factory} needs these tables, SELECT, INSERT and UPDATE on them, and DELETE on the last; create them, or set createTable: true:\n${asScript(this.server.tableStatements)}`;
      throw this.failures.toBackendError(error, 'refused', hint);
    }
  }
}
