import type { RowQuery } from '../lock-rows-options.js';
import { codesOf, rowsOf } from './rows-of.js';

/** ER_LOCK_WAIT_TIMEOUT (also MariaDB's NOWAIT), ER_LOCK_NOWAIT. */
const BUSY = [1205, 3572];
/** ER_NO_SUCH_TABLE */
const NO_TABLE = 1146;
const LONGEST_TIMEOUT = 100_000_000;
/** SERVER_STATUS_IN_TRANS of the protocol. */
const IN_TRANSACTION = 1;

export class MysqlRows {
  readonly database = 'mysql';
  readonly quote = '`';

  constructor(private readonly isMariaDb: boolean) {}

  async makeRow(autocommit: RowQuery, table: string, key: string): Promise<void> {
    const bytes = Buffer.from(key);
    if (rowsOf(await autocommit(`SELECT 1 FROM ${table} WHERE lock_name = ?`, [bytes])).length > 0) return;
    await autocommit(`INSERT IGNORE INTO ${table} (lock_name) VALUES (?)`, [bytes]);
  }

  /** Restores the setting, because it belongs to the session, which others use later. */
  async within(query: RowQuery, waitTime: number | undefined, work: () => Promise<void>): Promise<void> {
    if (waitTime === undefined || waitTime === 0) return work();
    const [before] = rowsOf(await query('SELECT @@SESSION.innodb_lock_wait_timeout AS time', []));
    const limit = Math.min(Math.max(1, Math.ceil(waitTime / 1_000)), LONGEST_TIMEOUT);
    await query(`SET SESSION innodb_lock_wait_timeout = ${limit}`, []);
    try {
      await work();
    } finally {
      await query(`SET SESSION innodb_lock_wait_timeout = ${Number(before.time)}`, []);
    }
  }

  async lock(
    query: RowQuery,
    table: string,
    key: string,
    mode: 'exclusive' | 'share',
    isTry: boolean,
  ): Promise<boolean> {
    const share = this.isMariaDb ? 'LOCK IN SHARE MODE' : 'FOR SHARE';
    const how = `${mode === 'share' ? share : 'FOR UPDATE'}${isTry ? ' NOWAIT' : ''}`;
    const answer = await query(`SELECT 1 AS locked FROM ${table} WHERE lock_name = ? ${how}`, [Buffer.from(key)]);
    return rowsOf(answer).length > 0;
  }

  async isInTransaction(query: RowQuery): Promise<boolean> {
    // Oracle's MySQL has no such variable, but reports the state with each answer that has no rows.
    if (!this.isMariaDb) return isTransactionOpen(await query('DO 0', [])) ?? true;
    return rowsOf(await query('SELECT 1 AS open FROM (SELECT 1) AS one WHERE @@in_transaction = 1', [])).length > 0;
  }

  isBusy(error: unknown): boolean {
    return codesOf(error).some((code) => BUSY.includes(Number(code)));
  }

  isMissingTable(error: unknown): boolean {
    return codesOf(error).some((code) => Number(code) === NO_TABLE);
  }
}

/**
 * Reads the status in the answer to a statement without rows, as mysql and mysql2 return it, also through most
 * libraries. `undefined`: the answer does not contain it.
 */
function isTransactionOpen(answer: unknown): boolean | undefined {
  const header: unknown = Array.isArray(answer) ? answer[0] : answer;
  const { serverStatus } = (header ?? {}) as { readonly serverStatus?: unknown };
  return typeof serverStatus === 'number' ? (serverStatus & IN_TRANSACTION) !== 0 : undefined;
}
