import type { RedisLockOptions } from '../../../lib/service/redis-lock-options.js';
import type { RowLocksOptions } from '../../../lib/sql.js';
import type { SqlLocks } from '../../sql/sql-locks.js';
import type { History, HistoryRecord } from '../history.js';
import { RecordingProcess } from '../recording-process.js';
import type { Crew } from './load.js';

export type SqlOptions = RowLocksOptions & { readonly locks: SqlLocks };

/** The instructions for a load process. They are sent as JSON. */
export interface LoadSpec {
  readonly process: string;
  readonly options: RedisLockOptions;
  readonly crews: readonly Crew[];
  /** Locks are in this database. */
  readonly sql?: SqlOptions;
}

export type LoadProcess = RecordingProcess<LoadSpec, HistoryRecord>;

/**
 * Starts a separate process that keeps locks busy.
 *
 * @param endsWithin how many milliseconds it may take until its last callers are answered
 */
export function startLoad(spec: LoadSpec, history: History, endsWithin = 20_000): LoadProcess {
  return new RecordingProcess(spec, {
    program: 'test/chaos/faults/load-program.ts',
    record: (record) => void history.records.push(record),
    crashed: (at) => history.add(spec.process, at, { kind: 'crashed' }),
    endsWithin,
  });
}
