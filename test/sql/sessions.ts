import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { PASSWORD, type SqlServer } from '../support/servers/sql/sql-server.js';
import type { SqlWorld } from './sql-world.js';

/** How many sessions of the tests' user wait for a row, and how many there are, without the one that asks. */
export async function countSessions(server: SqlServer): Promise<{ waiting: number; all: number }> {
  const [row] = await query(
    server,
    `SELECT count(*) AS "all", count(*) FILTER (WHERE wait_event_type = 'Lock') AS waiting FROM pg_stat_activity WHERE usename = 'locks' AND pid <> pg_backend_pid()`,
    `SELECT COUNT(*) AS 'all', SUM(COMMAND <> 'Sleep' AND (INFO LIKE '%FOR UPDATE%' OR INFO LIKE 'SELECT GET_LOCK%')) AS waiting FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID()`,
  );
  return { waiting: Number(row.waiting), all: Number(row.all) };
}

/** Runs one statement on a separate connection. */
export async function query(
  { kind, url }: SqlServer,
  postgres: string,
  mariadb: string,
): Promise<Record<string, unknown>[]> {
  if (kind === 'PostgreSQL') {
    const client = new pg.Client(url);
    await client.connect();
    const { rows } = await client.query(postgres);
    await client.end();
    return rows;
  }
  const connection = await mysql.createConnection(url);
  const [rows] = await connection.query(mariadb);
  await connection.end();
  return rows as Record<string, unknown>[];
}

/** A new user with the rights on the tables that the documentation names, except one of these rights. */
export async function addUser({ server, table, locks }: SqlWorld, without?: string): Promise<string> {
  const user = `user_${randomUUID().slice(0, 8)}`;
  const rights = (...all: string[]) => all.filter((right) => right !== without).join(', ');
  const [some, all] = [rights('SELECT', 'INSERT', 'UPDATE'), rights('SELECT', 'INSERT', 'UPDATE', 'DELETE')];
  const isPostgres = server.kind === 'PostgreSQL';
  await server.asAdmin(
    isPostgres
      ? `CREATE ROLE ${user} LOGIN PASSWORD '${PASSWORD}'`
      : `CREATE USER ${user}@'%' IDENTIFIED BY '${PASSWORD}'`,
    ...(locks === 'rowLocks' ? [`GRANT ${some} ON ${table} TO ${user}`] : []),
    `GRANT ${some} ON ${table}_state TO ${user}`,
    `GRANT ${all} ON ${table}_client TO ${user}`,
    ...(isPostgres ? [`GRANT ${some} ON ${table}_epoch, ${table}_floor TO ${user}`] : []),
  );
  return user;
}

/** PostgreSQL's processes release the folder and the port when they notice that their parent process is gone. */
export async function startAgain(server: SqlServer): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await server.start();
    } catch (error) {
      if (attempt === 100) throw error;
      await sleep(250);
    }
  }
}

/** Locks the row of a lock in the state table, in a transaction of a separate session. @returns unlocks it */
export async function lockState({ server, table }: SqlWorld, name: string): Promise<() => Promise<void>> {
  const isPostgres = server.kind === 'PostgreSQL';
  const other = isPostgres ? new pg.Client(server.url) : await mysql.createConnection(server.url);
  await other.connect();
  const run = (sql: string): Promise<unknown> => (other as pg.Client).query(sql);
  await run('BEGIN');
  await run(`SELECT 1 FROM ${table}_state WHERE lock_name = 'lock:${name}' FOR UPDATE`);
  return async () => {
    await run('ROLLBACK');
    await other.end();
  };
}
