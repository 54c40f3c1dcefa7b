import { SingleNodeWatch } from '../../backends/node-health.js';
import type { Runtime } from '../../backends/runtime.js';
import { ConnectionLost, type Driver, SqlConnection } from '../driver/sql-connection.js';
import type { LockServer } from '../server/lock-server.js';
import { isPermanent, type SqlFailures } from './sql-failure.js';

/** How often making the tables is tried again where other processes make them at the same time. */
const CREATE_ATTEMPTS = 5;
/** All acquisitions of the process queue for it: more than a statement of a session gets. */
const STATEMENT_LIMIT = 5_000;

/**
 * The connection on which everything runs in autocommit: making rows, tokens, looking at locks, cancelling waits. It is opened when it is
 * first used, with a look at the server's version and at the tables, and again after it has ended.
 */
export class ControlConnection {
  /** Why it could not be opened. */
  error: Error | undefined;
  readonly watch: SingleNodeWatch;
  private current: Promise<SqlConnection> | undefined;
  private closed = false;

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
   * Runs statements on it.
   *
   * @throws BackendError
   */
  run<T>(work: (connection: SqlConnection) => Promise<T>): Promise<T> {
    return this.watch.health.observe(this.runUnobserved(work), true);
  }

  open(): Promise<SqlConnection> {
    this.current ??= this.watch.health.observe(
      this.runtime.detached(() => this.connect()),
      true,
    );
    return this.current;
  }

  close(): void {
    this.closed = true;
    this.current?.then(
      (connection) => connection.close(),
      () => {},
    );
  }

  private async runUnobserved<T>(work: (connection: SqlConnection) => Promise<T>): Promise<T> {
    const connection = await this.open();
    try {
      return await work(connection);
    } catch (error) {
      // What is behind a statement without an answer would have none either.
      if (error instanceof ConnectionLost) this.forget(connection);
      throw this.failures.toBackendError(error);
    }
  }

  private async connect(): Promise<SqlConnection> {
    let connection: SqlConnection | undefined;
    try {
      connection = new SqlConnection(await this.driver.connect(), this.runtime, STATEMENT_LIMIT);
      const opened = connection;
      await this.server.prepareControl(opened);
      if (this.createTable) await this.createTables(opened);
      await this.checkTables(opened);
      opened.onEnd(() => {
        this.current = undefined;
      });
      if (opened.ended !== undefined) throw opened.ended;
      if (this.closed) opened.close();
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

  /** Two processes that create one table at once may disturb each other in spite of IF NOT EXISTS. */
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

  private async checkTables(connection: SqlConnection): Promise<void> {
    try {
      await this.server.checkTables(connection);
    } catch (error) {
      if (!isPermanent(error)) throw error;
      const statements = this.server.tableStatements.map((statement) => `${statement};`).join('\n');
      const hint = `. rowLocks() needs these tables, SELECT, INSERT and UPDATE on them, and DELETE on the last; create them, or set createTable: true:\n${statements}`;
      throw this.failures.toBackendError(error, 'refused', hint);
    }
  }

  private forget(connection: SqlConnection): void {
    this.current = undefined;
    connection.destroy();
  }
}
