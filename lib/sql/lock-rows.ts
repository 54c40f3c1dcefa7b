import { LockBusyError, LockConfigurationError } from '../engine/errors.js';
import { toWaitTime } from '../engine/terms/duration.js';
import { toKey, toLockNames } from '../engine/terms/lock-name.js';
import { dialectOf, type RowDialect } from './lock-rows/row-dialect.js';
import type { LockRowsOptions, RowQuery } from './lock-rows-options.js';
import { quoteTable } from './server/table-name.js';

const OPTION_NAMES = ['mode', 'waitTime', 'autocommit', 'table', 'keyPrefix'];

/**
 * Locks rows inside your own transaction: they become free with its COMMIT or ROLLBACK, so that lock and data are one. They are the locks of
 * `rowLocks`: whoever holds one of them keeps the other out.
 *
 * ```ts
 * await dataSource.transaction(async (manager) => {
 *   await lockRows((sql, params) => manager.query(sql, params), `order:${id}`, { autocommit: (sql, params) => dataSource.query(sql, params) });
 *   // read, decide, write
 * });
 * ```
 *
 * Several names are locked in sorted order. There is no lease, no fencing token and no re-entry: the transaction is all there is. When it
 * rejects, end the transaction with ROLLBACK.
 *
 * @param query runs one statement in your transaction, and gives its rows (or what `pg` or `mysql2` gives). Placeholders are the driver's own
 * @throws LockBusyError when `waitTime` is over
 * @throws LockKeyError, LockConfigurationError for a bad name or option, or when a row is missing and there is no `autocommit`
 * @throws what `query` throws, such as the database's error of a deadlock
 * @publicApi
 */
export async function lockRows(
  query: RowQuery,
  names: string | readonly string[],
  options: LockRowsOptions = {},
): Promise<void> {
  const what = 'lockRows()';
  for (const option of Object.keys(options))
    if (!OPTION_NAMES.includes(option))
      throw wrong(`there is no option '${option}'; there are ${OPTION_NAMES.join(', ')}`);
  const { mode = 'exclusive', autocommit, table = 'distributed_lock', keyPrefix = 'lock:' } = options;
  if (mode !== 'exclusive' && mode !== 'share') throw wrong(`mode is '${mode}'; it must be 'exclusive' or 'share'`);
  const waitTime = options.waitTime === undefined ? undefined : toWaitTime(options.waitTime, `${what}: waitTime`);
  const all = toLockNames(Array.isArray(names) ? names : [names], what).map((name) => toKey(keyPrefix, name, what));
  const dialect = await dialectOf(query);
  const [rows] = quoteTable(table, dialect.quote);
  if (autocommit !== undefined) for (const key of all) await dialect.makeRow(autocommit, rows, key);
  await dialect.within(query, waitTime, async () => {
    for (const key of all) await lockRow(query, dialect, rows, key, mode, waitTime === 0);
  });
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
    throw new LockBusyError(`The lock '${key}' is busy: its row is locked by another transaction`, key, -1, undefined);
  }
  throw wrong(
    `the row '${key}' is not there, or not visible to this transaction: give the option autocommit, a query function outside the transaction, which makes it`,
  );
}

function wrong(why: string): LockConfigurationError {
  return new LockConfigurationError(`lockRows(): ${why}`);
}
