import type { SqlConnection } from '../driver/sql-connection.js';
import { createRows } from '../server/create-tables.js';
import { insertMissing, SessionTimeouts, TRANSACTIONS, toBytes } from '../server/mysql-server.js';
import { probesOfRows } from '../server/rights.js';
import type { MysqlLocks, TakenLock } from './session-locks.js';

const HELD: TakenLock = { transaction: 0 };

/** Rows that a session has locked. Its first SELECT … FOR UPDATE begins a transaction, because `autocommit` is off. */
export class MysqlRowLocks implements MysqlLocks {
  readonly tableStatements: readonly string[];
  readonly isHeld = 'p.ID = s.session';
  private readonly timeouts = new SessionTimeouts();
  private isMariaDb = false;

  /** @param rows the quoted name of the table */
  constructor(private readonly rows: string) {
    this.tableStatements = [createRows('mysql', { rows })];
  }

  useServer(kind: 'MySQL' | 'MariaDB'): void {
    this.isMariaDb = kind === 'MariaDB';
  }

  async checkTables(control: SqlConnection): Promise<void> {
    for (const probe of probesOfRows(this.rows)) await control.run(probe);
  }

  async prepareSession(session: SqlConnection): Promise<void> {
    const own = this.isMariaDb
      ? 'max_statement_time = 0, idle_transaction_timeout = 0, idle_readonly_transaction_timeout = 0, idle_write_transaction_timeout = 0'
      : 'max_execution_time = 0';
    const settings = `sql_mode = '', autocommit = 0, completion_type = 0, innodb_lock_wait_timeout = 100000000, lock_wait_timeout = 31536000, ${own}`;
    await session.run(`SET SESSION ${settings}`);
    await session.run(TRANSACTIONS);
  }

  async begin(session: SqlConnection, key: string, leaseTime: number): Promise<TakenLock | undefined> {
    await this.timeouts.provide(session, leaseTime);
    return this.try(session, key);
  }

  try(session: SqlConnection, key: string): Promise<TakenLock | undefined> {
    return this.lock(session, key, ' SKIP LOCKED');
  }

  wait(session: SqlConnection, key: string): Promise<TakenLock | undefined> {
    return this.lock(session, key, '', Number.POSITIVE_INFINITY);
  }

  async provide(control: SqlConnection, key: string): Promise<boolean> {
    const { rows } = await control.run(`SELECT 1 FROM ${this.rows} WHERE lock_name = ?`, [toBytes(key)]);
    if (rows.length > 0) return false;
    await insertMissing(control, this.rows, key, this.isMariaDb);
    return true;
  }

  setLease(session: SqlConnection, leaseTime: number): Promise<void> {
    return this.timeouts.set(session, leaseTime);
  }

  async release(session: SqlConnection): Promise<boolean> {
    await session.run('COMMIT');
    return true;
  }

  async undo(session: SqlConnection): Promise<void> {
    await session.run('ROLLBACK');
  }

  private async lock(session: SqlConnection, key: string, how: string, limit?: number) {
    const text = `SELECT 1 FROM ${this.rows} WHERE lock_name = ? FOR UPDATE${how}`;
    const { rows } = await session.run(text, [toBytes(key)], limit);
    return rows.length === 0 ? undefined : HELD;
  }
}
