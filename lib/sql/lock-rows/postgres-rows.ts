import type { RowQuery } from '../lock-rows-options.js';
import { toMilliseconds } from '../server/postgres-statements.js';
import { codesOf, rowsOf } from './rows-of.js';

/** lock_not_available: NOWAIT or lock_timeout. */
const BUSY = '55P03';
/** undefined_table */
const NO_TABLE = '42P01';

export class PostgresRows {
  readonly database = 'postgres';
  readonly quote = '"';

  /** @param version the major version of the server */
  constructor(private readonly version: number) {}

  async makeRow(autocommit: RowQuery, table: string, key: string): Promise<void> {
    if (rowsOf(await autocommit(`SELECT 1 FROM ${table} WHERE lock_name = $1`, [key])).length > 0) return;
    await autocommit(`INSERT INTO ${table} (lock_name) VALUES ($1) ON CONFLICT DO NOTHING`, [key]);
  }

  /** A transaction in which a statement has failed is over, so there is nothing to restore. */
  async within(query: RowQuery, waitTime: number | undefined, work: () => Promise<void>): Promise<void> {
    if (waitTime === undefined || waitTime === 0) return work();
    const [before] = rowsOf(await query("SELECT current_setting('lock_timeout') AS time", []));
    const limit = Number.isFinite(waitTime) ? toMilliseconds(waitTime) : 0;
    await query("SELECT set_config('lock_timeout', $1, true)", [String(limit)]);
    await work();
    await query("SELECT set_config('lock_timeout', $1, true)", [String(before.time)]);
  }

  async lock(
    query: RowQuery,
    table: string,
    key: string,
    mode: 'exclusive' | 'share',
    isTry: boolean,
  ): Promise<boolean> {
    const how = `${mode === 'share' ? 'FOR SHARE' : 'FOR UPDATE'}${isTry ? ' NOWAIT' : ''}`;
    const answer = await query(`SELECT 1 FROM ${table} WHERE lock_name = $1 ${how}`, [key]);
    return rowsOf(answer).length > 0;
  }

  /** A transaction that has locked a row has an ID. */
  async isInTransaction(query: RowQuery): Promise<boolean> {
    if (!(this.version >= 10)) return true;
    return rowsOf(await query('SELECT 1 AS open WHERE txid_current_if_assigned() IS NOT NULL', [])).length > 0;
  }

  isBusy(error: unknown): boolean {
    return codesOf(error).includes(BUSY);
  }

  isMissingTable(error: unknown): boolean {
    return codesOf(error).includes(NO_TABLE);
  }
}
