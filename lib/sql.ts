export { advisoryLocks } from './sql/advisory-locks.js';
export type { AdvisoryLocksOptions } from './sql/advisory-locks-options.js';
export { lockRows, makeLockRows } from './sql/lock-rows.js';
export type { LockRowsOptions, RowQuery } from './sql/lock-rows-options.js';
export { rowLocks } from './sql/row-locks.js';
export type { MysqlPool, PostgresPool, RowLocksOptions } from './sql/row-locks-options.js';
