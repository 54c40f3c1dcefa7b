import type { RowQuery } from '../lock-rows-options.js';
import { MysqlRows } from './mysql-rows.js';
import { PostgresRows } from './postgres-rows.js';
import { rowsOf } from './rows-of.js';

/** The statements of `lockRows` for one kind of database. */
export interface RowDialect {
  readonly quote: '"' | '`';
  /** Makes the row in autocommit, unless it is there. */
  makeRow(autocommit: RowQuery, table: string, key: string): Promise<void>;
  /** Does `work` with this time limit for each lock; `undefined`: the database's own. */
  within(query: RowQuery, waitTime: number | undefined, work: () => Promise<void>): Promise<void>;
  /** False: there is no such row. */
  lock(query: RowQuery, table: string, key: string, mode: 'exclusive' | 'share', isTry: boolean): Promise<boolean>;
  /**
   * False: what was locked is free again, because the statements run outside of a transaction. True where the server
   * does not tell.
   */
  isInTransaction(query: RowQuery): Promise<boolean>;
  /** Whether an error says that somebody else has the row locked. */
  isBusy(error: unknown): boolean;
}

/** Asks the database what it is. This reads no table, so that it fixes no snapshot. */
export async function dialectOf(query: RowQuery): Promise<RowDialect> {
  const [row] = rowsOf(await query('SELECT version() AS version', []));
  const version = String(row?.version);
  if (version.startsWith('PostgreSQL'))
    return new PostgresRows(Number.parseInt(version.slice('PostgreSQL '.length), 10));
  return new MysqlRows(/mariadb/i.test(version));
}
