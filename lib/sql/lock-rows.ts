import { LockBusyError, LockConfigurationError } from '../engine/errors.js';
import { toWaitTime } from '../engine/terms/duration.js';
import { prefixProblem, toKey, toLockNames } from '../engine/terms/lock-name.js';
import { CHECKED_LATER, checkOptions, type OptionTable, oneOf } from '../engine/terms/option-table.js';
import { AdvisoryRows } from './lock-rows/advisory-rows.js';
import { dialectOf, type RowDialect } from './lock-rows/row-dialect.js';
import type { LockRowsOptions, RowQuery } from './lock-rows-options.js';
import { asScript, createOthers, createRows } from './server/create-tables.js';
import { quoteTable, type TableNames, tableProblem } from './server/table-name.js';

const ROWS = 'distributed_lock';
const TABLE_OPTIONS = { table: CHECKED_LATER, keyPrefix: CHECKED_LATER };
const OPTIONS: OptionTable<LockRowsOptions> = {
  by: oneOf('row', 'advisory'),
  mode: oneOf('exclusive', 'share'),
  waitTime: CHECKED_LATER,
  ...TABLE_OPTIONS,
};

/**
 * Locks rows inside your transaction. They become free with its COMMIT or ROLLBACK, together with the data. These locks
 * and the locks of `rowLocks` exclude each other. With `by: 'advisory'` (PostgreSQL), they are the locks of
 * `advisoryLocks`, which need no rows.
 *
 * ```ts
 * await makeLockRows((sql, params) => dataSource.query(sql, params), `order:${id}`);
 * await dataSource.transaction(async (manager) => {
 *   await lockRows((sql, params) => manager.query(sql, params), `order:${id}`);
 *   // read, decide, write
 * });
 * ```
 *
 * Several names are locked in sorted order. There is no lease, no fencing token and no re-entry. When it rejects, end
 * the transaction with ROLLBACK.
 *
 * @param query runs one statement in your transaction, and returns its rows (or the result of `pg` or `mysql2`). It
 * receives the driver's placeholders
 * @throws LockBusyError when `waitTime` ends
 * @throws LockKeyError, LockConfigurationError for a bad name or option, when the table is missing (the message
 * contains the statements that create it) or a row (see {@link makeLockRows}), or when `query` runs outside of a
 * transaction (with Prisma on Oracle's MySQL, that is not detected)
 * @throws what `query` throws, such as the database's error of a deadlock
 * @publicApi
 */
export async function lockRows(
  query: RowQuery,
  names: string | readonly string[],
  options: LockRowsOptions = {},
): Promise<void> {
  const what = 'lockRows()';
  checkOptions(options, OPTIONS, what);
  const { by = 'row', mode = 'exclusive' } = options;
  const waitTime = options.waitTime === undefined ? undefined : toWaitTime(options.waitTime, `${what}: waitTime`);
  const all = keysOf(what, names, options);
  checkTable(what, options);
  const dialect = await dialectOf(query);
  if (by === 'advisory') return lockAdvisory(query, dialect, all, options, waitTime);
  const { rows } = tablesOf(dialect, options);
  await dialect
    .within(query, waitTime, async () => {
      for (const key of all) await lockRow(query, dialect, rows, key, mode, waitTime === 0);
    })
    .catch(explainMissingTable(what, dialect, options));
  if (!(await dialect.isInTransaction(query))) throw wrong(OUTSIDE);
}

/**
 * Creates the rows of these locks if they are missing, so that `lockRows` finds them. Call it before the transaction
 * begins, with a query function that commits each statement. (Inside the transaction, nobody else could see the row,
 * and a pool may have no second connection.)
 *
 * @throws LockKeyError, LockConfigurationError for a bad name or option, or when the table is missing (the message
 * contains the statement that creates it)
 * @throws what `query` throws
 * @publicApi
 */
export async function makeLockRows(
  query: RowQuery,
  names: string | readonly string[],
  options: Pick<LockRowsOptions, 'table' | 'keyPrefix'> = {},
): Promise<void> {
  const what = 'makeLockRows()';
  checkOptions(options, TABLE_OPTIONS, what);
  const all = keysOf(what, names, options);
  checkTable(what, options);
  const dialect = await dialectOf(query);
  const { rows } = tablesOf(dialect, options);
  const explain = explainMissingTable(what, dialect, options);
  for (const key of all) await dialect.makeRow(query, rows, key).catch(explain);
}

async function lockAdvisory(
  query: RowQuery,
  dialect: RowDialect,
  all: readonly string[],
  { mode = 'exclusive', table = 'advisory_lock' }: LockRowsOptions,
  waitTime: number | undefined,
): Promise<void> {
  if (dialect.quote !== '"')
    throw wrong("by: 'advisory' needs PostgreSQL: locks of GET_LOCK do not end with a transaction. Use by: 'row'");
  const locks = await AdvisoryRows.of(query, table);
  if (locks === undefined) {
    const statements = createOthers('postgres', tablesOf(dialect, { table }));
    throw wrong(
      `there is no table ${table}_state, or this transaction does not see it: give the table of advisoryLocks(). It needs these tables:\n${asScript(statements)}`,
    );
  }
  await dialect.within(query, waitTime, async () => {
    for (const key of all) {
      const isLocked = await locks.lock(query, key, mode, waitTime === 0).catch(unlessBusy(dialect));
      if (!isLocked) throw busy(key, 'another session or transaction has it');
    }
  });
  if (!(await locks.isLocked(query, all[0]))) throw wrong(OUTSIDE);
}

/** False: the lock is busy. */
function unlessBusy(dialect: RowDialect): (error: unknown) => false {
  return (error) => {
    if (!dialect.isBusy(error)) throw error;
    return false;
  };
}

function keysOf(what: string, names: string | readonly string[], { keyPrefix = 'lock:' }: LockRowsOptions): string[] {
  const problem = prefixProblem(keyPrefix);
  if (problem !== undefined) throw new LockConfigurationError(`${what}: keyPrefix ${problem}`);
  return toLockNames(Array.isArray(names) ? names : [names], what).map((name) => toKey(keyPrefix, name, what));
}

function tablesOf({ quote }: RowDialect, { table = ROWS }: LockRowsOptions): TableNames {
  return quoteTable(table, quote);
}

/** Adds the statement that creates the table to the database's error. */
function explainMissingTable(
  what: string,
  dialect: RowDialect,
  { table = ROWS }: LockRowsOptions,
): (error: unknown) => never {
  return (error) => {
    if (!dialect.isMissingTable(error)) throw error;
    const statement = createRows(dialect.database, tablesOf(dialect, { table }));
    const message = `${what}: there is no table ${table}, or this connection does not see it: give the table of rowLocks(). lockRows() and makeLockRows() need this table alone:\n${asScript([statement])}`;
    throw new LockConfigurationError(message, { cause: error });
  };
}

function checkTable(what: string, { table }: LockRowsOptions): void {
  const problem = table === undefined ? undefined : tableProblem(table);
  if (problem !== undefined) throw new LockConfigurationError(`${what}: ${problem}`);
}

async function lockRow(
  query: RowQuery,
  dialect: RowDialect,
  rows: string,
  key: string,
  mode: 'exclusive' | 'share',
  isTry: boolean,
): Promise<void> {
  try {
    if (await dialect.lock(query, rows, key, mode, isTry)) return;
  } catch (error) {
    if (!dialect.isBusy(error)) throw error;
    throw busy(key, 'its row is locked by another transaction');
  }
  throw wrong(
    `the row '${key}' does not exist, or is not visible to this transaction: call makeLockRows() before the transaction begins`,
  );
}

const OUTSIDE =
  'the query function runs outside of a transaction, so that nothing is locked: give the query function of the transaction, such as (sql, params) => manager.query(sql, params)';

function busy(key: string, why: string): LockBusyError {
  return new LockBusyError(`The lock '${key}' is busy: ${why}`, key, -1, undefined);
}

function wrong(why: string): LockConfigurationError {
  return new LockConfigurationError(`lockRows(): ${why}`);
}
