import type { LockBackend } from '../backends/lock-backend.js';
import { LockConfigurationError } from '../engine/errors.js';
import { nodeRuntime } from '../engine/node-runtime.js';
import { type DriverChoice, driverFromPool, driverFromUrl } from './driver/choose-driver.js';
import type { RowLocksOptions } from './row-locks-options.js';
import { MysqlServer } from './server/mysql-server.js';
import { PostgresServer } from './server/postgres-server.js';
import { quoteTable, tableProblem } from './server/table-name.js';
import { ControlConnection } from './session/control-connection.js';
import { HolderNotes } from './session/holder-notes.js';
import { SessionPool } from './session/session-pool.js';
import { SqlFailures } from './session/sql-failure.js';
import { WaitingSessions } from './session/waiting-sessions.js';
import { MysqlRowLocks } from './session-locks/mysql-row-locks.js';
import { PostgresRowLocks } from './session-locks/postgres-row-locks.js';
import { SqlLockBackend } from './sql-lock-backend.js';

const OPTION_NAMES = ['url', 'pool', 'table', 'createTable', 'connections', 'singlePrimary'];
const CONNECTIONS = 10;
const MOST_CONNECTIONS = 10_000;

/**
 * Keeps locks as rows of a PostgreSQL, MySQL or MariaDB database: for `RedisLockModule.forRoot({ backend })` and
 * `createLockService`. It connects when it is first used. The driver, `pg` or `mysql2`, has to be installed.
 *
 * ```ts
 * RedisLockModule.forRoot({ backend: rowLocks({ url: 'postgres://app:secret@db/shop', createTable: true }) })
 * ```
 *
 * An acquisition is a transaction on a separate connection that holds the row's lock; releasing it is COMMIT. A process
 * that dies frees its locks at once, and one that hangs after the lease, by the database's own timer. There are
 * exclusive locks only (`reentrant` and `write`); semaphores and latches need Redis.
 *
 * @throws LockConfigurationError naming the option that is missing or wrong
 * @publicApi
 */
export function rowLocks(options: RowLocksOptions): LockBackend {
  const { connections, createTable, table, singlePrimary } = checkRowLocksOptions(options);
  const { kind, driver, secrets } = chooseDriver(options, connections);
  const runtime = nodeRuntime;
  const tables = quoteTable(table, kind === 'postgres' ? '"' : '`');
  const server =
    kind === 'postgres'
      ? new PostgresServer(tables, new PostgresRowLocks(tables.rows))
      : new MysqlServer(tables, new MysqlRowLocks(tables.rows), singlePrimary);
  const failures = new SqlFailures(driver.description, secrets);
  const control = new ControlConnection(driver, server, failures, runtime, createTable);
  const pool = new SessionPool(driver, server, failures, runtime, connections);
  const notes = new HolderNotes(server, control, runtime);
  const waiting = new WaitingSessions(server, control, runtime);
  return new SqlLockBackend(driver.description, { server, control, notes, pool, waiting, failures, runtime });
}

function checkRowLocksOptions(options: RowLocksOptions): Required<Omit<RowLocksOptions, 'url' | 'pool'>> {
  if (typeof options !== 'object' || options === null) refuse("give options, such as { url: 'postgres://…' }");
  for (const option of Object.keys(options))
    if (!OPTION_NAMES.includes(option)) refuse(`there is no option '${option}'; there are ${OPTION_NAMES.join(', ')}`);
  const { url, pool, table = 'distributed_lock', createTable = false, connections = CONNECTIONS } = options;
  const { singlePrimary = false } = options;
  if ((url === undefined) === (pool === undefined)) refuse('give one of url and pool');
  if (typeof createTable !== 'boolean') refuse('createTable must be true or false');
  if (typeof singlePrimary !== 'boolean') refuse('singlePrimary must be true or false');
  if (!(Number.isInteger(connections) && connections >= 1 && connections <= MOST_CONNECTIONS))
    refuse(`connections is ${connections}; it must be a whole number from 1 to ${MOST_CONNECTIONS}`);
  const problem = tableProblem(table);
  if (problem !== undefined) refuse(problem);
  return { table, createTable, connections, singlePrimary };
}

function chooseDriver({ url, pool }: RowLocksOptions, connections: number): DriverChoice {
  const choice = pool === undefined ? driverFromUrl(url) : driverFromPool(pool, connections);
  if (typeof choice === 'string') refuse(choice);
  return choice;
}

function refuse(why: string): never {
  throw new LockConfigurationError(`rowLocks(): ${why}`);
}
