import type { SqlConnection, SqlRow } from '../driver/sql-connection.js';
import { createRows } from '../server/create-tables.js';
import { insertMissing, micros, toLiteral, toMilliseconds } from '../server/postgres-statements.js';
import { probesOfRows } from '../server/rights.js';
import type { PostgresLocks, TakenLock } from './session-locks.js';

/**
 * Rows that a transaction has locked (SKIP LOCKED and idle_in_transaction_session_timeout are in PostgreSQL 9.6 and
 * later).
 */
export class PostgresRowLocks implements PostgresLocks {
  readonly oldest = 90_600;
  readonly tableStatements: readonly string[];
  /**
   * The transaction in the state still runs. It is identified by the session's process and by the time at which it
   * began.
   */
  readonly isHeld = `a.pid = s.session AND ${micros('a.xact_start')} = s.transaction`;
  readonly idleState = 'idle in transaction%';
  /** Settings that exist only on newer servers. */
  private newer: readonly string[] = [];

  /** @param rows the quoted name of the table */
  constructor(private readonly rows: string) {
    this.tableStatements = [createRows('postgres', { rows })];
  }

  useSettings(newer: readonly string[]): void {
    this.newer = newer;
  }

  async checkTables(control: SqlConnection): Promise<void> {
    await control.run(probesOfRows(this.rows).join(';'));
  }

  /** Nothing to do. All settings are local to a transaction, because other clients may get the session. */
  async prepareSession(): Promise<void> {}

  /** `synchronous_commit` is off, because a transaction that only locks rows writes nothing that could be lost. */
  async begin(session: SqlConnection, key: string, leaseTime: number): Promise<TakenLock | undefined> {
    const settings = ['statement_timeout = 0', 'lock_timeout = 0', 'synchronous_commit = off', ...this.newer];
    const local = settings.map((setting) => `SET LOCAL ${setting}`).join('; ');
    const { rows } = await session.run(
      `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; ${local}; ${setIdleTimeout(leaseTime)}; ${this.lockStatement(toLiteral(key), ' SKIP LOCKED')}`,
    );
    return toTakenLock(rows);
  }

  try(session: SqlConnection, key: string): Promise<TakenLock | undefined> {
    return this.lock(session, key, ' SKIP LOCKED');
  }

  wait(session: SqlConnection, key: string): Promise<TakenLock | undefined> {
    return this.lock(session, key, '', Number.POSITIVE_INFINITY);
  }

  async provide(control: SqlConnection, key: string): Promise<boolean> {
    const { rows } = await control.run(`SELECT 1 FROM ${this.rows} WHERE lock_name = $1`, [key]);
    if (rows.length > 0) return false;
    await insertMissing(control, this.rows, key);
    return true;
  }

  async setLease(session: SqlConnection, leaseTime: number): Promise<void> {
    await session.run(setIdleTimeout(leaseTime));
  }

  /** A failed transaction answers COMMIT with ROLLBACK. Then its lock has been free since the failure. */
  async release(session: SqlConnection): Promise<boolean> {
    return (await session.run('COMMIT')).command === 'COMMIT';
  }

  async undo(session: SqlConnection): Promise<void> {
    await session.run('ROLLBACK');
  }

  private async lock(session: SqlConnection, key: string, how: string, limit?: number) {
    const { rows } = await session.run(this.lockStatement('$1', how), [key], limit);
    return toTakenLock(rows);
  }

  private lockStatement(name: string, how: string): string {
    return `SELECT ${micros('now()')} AS transaction FROM ${this.rows} WHERE lock_name = ${name} FOR UPDATE${how}`;
  }
}

function toTakenLock([row]: readonly SqlRow[]): TakenLock | undefined {
  return row && { transaction: Number(row.transaction) };
}

function setIdleTimeout(leaseTime: number): string {
  return `SET LOCAL idle_in_transaction_session_timeout = ${toMilliseconds(leaseTime)}`;
}
