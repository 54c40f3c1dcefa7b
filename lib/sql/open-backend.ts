import type { LockBackend } from '../backend.js';
import { nodeRuntime } from '../core.js';
import { LockConfigurationError } from '../engine/errors.js';
import {
  CHECKED_LATER,
  checkOptions,
  type OptionTable,
  TRUE_OR_FALSE,
  wholeNumber,
} from '../engine/terms/option-table.js';
import { type DriverChoice, driverFromPool, driverFromUrl } from './driver/choose-driver.js';
import type { RowLocksOptions } from './row-locks-options.js';
import type { LockServer, LockWords } from './server/lock-server.js';
import { MysqlServer } from './server/mysql-server.js';
import { PostgresServer } from './server/postgres-server.js';
import { PostgresTokens } from './server/postgres-tokens.js';
import { quoteTable, type TableNames, tableProblem } from './server/table-name.js';
import { ControlConnection } from './session/control-connection.js';
import { HolderNotes } from './session/holder-notes.js';
import { SessionPool } from './session/session-pool.js';
import { SilentSessions } from './session/silent-sessions.js';
import { SqlFailures } from './session/sql-failure.js';
import type { MysqlLocks, PostgresLocks } from './session-locks/session-locks.js';
import { SqlLockBackend } from './sql-lock-backend.js';

const CONNECTIONS = 10;
const MOST_CONNECTIONS = 10_000;
const OPTIONS: OptionTable<RowLocksOptions> = {
  url: CHECKED_LATER,
  pool: CHECKED_LATER,
  table: CHECKED_LATER,
  createTable: TRUE_OR_FALSE,
  connections: wholeNumber(1, MOST_CONNECTIONS),
  singlePrimary: TRUE_OR_FALSE,
};

/** One kind of locks for each kind of database. */
export interface LockKind extends LockWords {
  /** The default table. */
  readonly table: string;
  postgres(tables: TableNames, tokens: PostgresTokens): PostgresLocks;
  mysql(tables: TableNames): MysqlLocks;
}

/** @throws LockConfigurationError naming the option that is missing or wrong */
export function openBackend(kind: LockKind, options: RowLocksOptions): LockBackend {
  const refuse = (why: string): never => {
    throw new LockConfigurationError(`${kind.factory}: ${why}`);
  };
  const { connections, createTable, table, singlePrimary } = resolveOptions(kind, options, refuse);
  const { kind: database, driver, secrets } = chooseDriver(options, connections, refuse);
  const runtime = nodeRuntime;
  const server = serverOf(kind, database, table, singlePrimary);
  const failures = new SqlFailures(driver.description, secrets);
  const control = new ControlConnection(driver, server, failures, runtime, createTable);
  const pool = new SessionPool(driver, server, failures, runtime, connections);
  const notes = new HolderNotes(server, control, runtime);
  const silent = new SilentSessions(server, control, runtime);
  return new SqlLockBackend(driver.description, { server, control, notes, pool, silent, failures, runtime });
}

type Refuse = (why: string) => never;

function resolveOptions(
  kind: LockKind,
  options: RowLocksOptions,
  refuse: Refuse,
): Required<Omit<RowLocksOptions, 'url' | 'pool'>> {
  if (typeof options !== 'object' || options === null) refuse("give options, such as { url: 'postgres://…' }");
  checkOptions(options, OPTIONS, kind.factory);
  const { url, pool, table = kind.table, createTable = false, connections = CONNECTIONS } = options;
  const { singlePrimary = false } = options;
  if ((url === undefined) === (pool === undefined)) refuse('give one of url and pool');
  const problem = tableProblem(table);
  if (problem !== undefined) refuse(problem);
  return { table, createTable, connections, singlePrimary };
}

function chooseDriver({ url, pool }: RowLocksOptions, connections: number, refuse: Refuse): DriverChoice {
  const choice = pool === undefined ? driverFromUrl(url) : driverFromPool(pool, connections);
  return typeof choice === 'string' ? refuse(choice) : choice;
}

function serverOf(kind: LockKind, database: DriverChoice['kind'], table: string, singlePrimary: boolean): LockServer {
  const tables = quoteTable(table, database === 'postgres' ? '"' : '`');
  if (database === 'postgres') {
    const tokens = new PostgresTokens(tables);
    return new PostgresServer(kind, tables, tokens, kind.postgres(tables, tokens));
  }
  return new MysqlServer(kind, tables, kind.mysql(tables), singlePrimary);
}
