import type { TableNames } from './table-name.js';

type Database = 'postgres' | 'mysql';

/** The statement for the table of lock rows. `lockRows` needs this table alone, `rowLocks` also {@link createOthers}. */
export function createRows(database: Database, { rows }: Pick<TableNames, 'rows'>): string {
  return database === 'postgres'
    ? `CREATE TABLE IF NOT EXISTS ${rows} (lock_name text COLLATE "C" PRIMARY KEY)`
    : `CREATE TABLE IF NOT EXISTS ${rows} (lock_name varbinary(1024) PRIMARY KEY) ENGINE=InnoDB`;
}

/** The statements for the tables that all locks of sessions need. The last one is for the table of clients. */
export function createOthers(database: Database, { state, epoch, floor, clients }: TableNames): readonly string[] {
  if (database === 'mysql')
    return [
      `CREATE TABLE IF NOT EXISTS ${state} (lock_name varbinary(1024) PRIMARY KEY, token bigint NOT NULL DEFAULT 0, reserved int NOT NULL DEFAULT 0, owner varchar(255), mode varchar(16), session bigint, lease bigint, since bigint) ENGINE=InnoDB`,
      // Records are far smaller: up to 20 locks and waits. A record that exceeds max_allowed_packet is an error.
      `CREATE TABLE IF NOT EXISTS ${clients} (client_id varchar(64) CHARACTER SET ascii PRIMARY KEY, record mediumtext CHARACTER SET utf8mb4 NOT NULL, written bigint NOT NULL, expires bigint NOT NULL) ENGINE=InnoDB`,
    ];
  const onlyRow = 'only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row)';
  return [
    `CREATE TABLE IF NOT EXISTS ${state} (lock_name text COLLATE "C" PRIMARY KEY, token bigint NOT NULL DEFAULT 0, reserved integer NOT NULL DEFAULT 0, owner text, mode text, session bigint, transaction bigint, lease bigint, since timestamptz)`,
    `CREATE UNLOGGED TABLE IF NOT EXISTS ${epoch} (${onlyRow}, base bigint NOT NULL)`,
    `CREATE TABLE IF NOT EXISTS ${floor} (${onlyRow}, token_limit bigint NOT NULL)`,
    `CREATE TABLE IF NOT EXISTS ${clients} (client_id text COLLATE "C" PRIMARY KEY, record text NOT NULL, written bigint NOT NULL, expires bigint NOT NULL)`,
  ];
}

/** The statements as text to run, one on each line. */
export function asScript(statements: readonly string[]): string {
  return statements.map((statement) => `${statement};`).join('\n');
}
