import type { RowQuery } from '../lock-rows-options.js';
import { quoteTable } from '../server/table-name.js';
import { keySpace, numberOfKey } from '../session-locks/advisory-lock.js';
import { rowsOf } from './rows-of.js';

/** The locks of `advisoryLocks` for a transaction of PostgreSQL. They end with the transaction. */
export class AdvisoryRows {
  /** @param space the key space of the table */
  private constructor(private readonly space: string) {}

  /** Returns `undefined` if the table does not exist, or this transaction does not see it. */
  static async of(query: RowQuery, table: string): Promise<AdvisoryRows | undefined> {
    const [row] = rowsOf(
      await query(
        'SELECT n.nspname AS schema, c.relname AS name FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)',
        [quoteTable(table, '"').state],
      ),
    );
    return row && new AdvisoryRows(keySpace(row.schema, row.name));
  }

  /** Returns false if `isTry` is set and another transaction or session has the lock. */
  async lock(query: RowQuery, key: string, mode: 'exclusive' | 'share', isTry: boolean): Promise<boolean> {
    const name = `pg_${isTry ? 'try_' : ''}advisory_xact_lock${mode === 'share' ? '_shared' : ''}`;
    const [row] = rowsOf(await query(`SELECT ${name}(CAST($1 AS bigint)) AS locked`, [this.numberOf(key)]));
    return !isTry || row?.locked === true;
  }

  /** Returns false if the lock is already free again, because the statements run outside of a transaction. */
  async isLocked(query: RowQuery, key: string): Promise<boolean> {
    const text = `SELECT 1 AS one FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND objsubid = 1 AND granted
      AND ((CAST(classid AS bigint) << 32) | CAST(objid AS bigint)) = CAST($1 AS bigint)`;
    return rowsOf(await query(text, [this.numberOf(key)])).length > 0;
  }

  private numberOf(key: string): string {
    return numberOfKey(this.space, key).toString();
  }
}
