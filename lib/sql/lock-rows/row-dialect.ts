import type { RowQuery } from '../lock-rows-options.js';
import { MysqlRows } from './mysql-rows.js';
import { PostgresRows } from './postgres-rows.js';
import { rowsOf } from './rows-of.js';

/** The statements of `lockRows` for one kind of database. */
export interface RowDialect {
  readonly database: 'postgres' | 'mysql';
  readonly quote: '"' | '`';
  /** Creates the row in autocommit if it is missing. */
  makeRow(autocommit: RowQuery, table: string, key: string): Promise<void>;
  /** Runs `work` with this time limit for each lock. `undefined`: the limit of the database. */
  within(query: RowQuery, waitTime: number | undefined, work: () => Promise<void>): Promise<void>;
  /** Returns false if the row does not exist. */
  lock(query: RowQuery, table: string, key: string, mode: 'exclusive' | 'share', isTry: boolean): Promise<boolean>;
  /**
   * Returns false if the lock is already free again, because the statements run outside of a transaction. Returns true
   * if the server does not report this.
   */
  isInTransaction(query: RowQuery): Promise<boolean>;
  /** Whether an error says that another transaction has locked the row. */
  isBusy(error: unknown): boolean;
  /** Whether an error says that the table does not exist. */
  isMissingTable(error: unknown): boolean;
}

/** Asks the database for its version. This reads no table, so it fixes no snapshot of the transaction. */
export async function dialectOf(query: RowQuery): Promise<RowDialect> {
  const [row] = rowsOf(await query('SELECT version() AS version', []));
  const version = String(row?.version);
  if (version.startsWith('PostgreSQL'))
    return new PostgresRows(Number.parseInt(version.slice('PostgreSQL '.length), 10));
  return new MysqlRows(/mariadb/i.test(version));
}
