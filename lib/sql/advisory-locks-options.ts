import type { RowLocksOptions } from './row-locks-options.js';

/** Options of `advisoryLocks`. Give one of `url` and `pool`. @publicApi */
export interface AdvisoryLocksOptions extends Omit<RowLocksOptions, 'table'> {
  /**
   * The prefix of the tables' names, as `name` or `schema.name`. Default `'advisory_lock'`. The table with the locks'
   * tokens and holders has the suffix `_state`. Processes with different tables have different locks. A table of
   * `rowLocks` is refused, because the two kinds of locks do not exclude each other.
   */
  readonly table?: string;
}
