export { lockRows, makeLockRows } from './sql/lock-rows.js';
export type { LockRowsOptions, RowQuery } from './sql/lock-rows-options.js';
export { rowLocks } from './sql/row-locks.js';
export type { MysqlPool, PostgresPool, RowLocksOptions } from './sql/row-locks-options.js';
