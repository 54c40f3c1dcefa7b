export { rowLocks } from './sql/row-locks.js';
export type { RowLocksOptions } from './sql/row-locks-options.js';
