import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { SQL_SERVERS } from '../support/servers/sql/sql-server.js';
import { query } from './sessions.js';
import { openSqlWorld } from './sql-world.js';

const [postgresScript, mysqlScript] = [...readFileSync('docs/locks-in-sql.md', 'utf8').matchAll(/```sql\n([^`]*?)```/g)]
  .map(([, sql]) => sql)
  .filter((sql) => sql.includes('DELETE'));

describe.each(SQL_SERVERS)('rows that are removed as the documentation says, %s', (kind) => {
  const world = openSqlWorld(kind);

  /**
   * Runs the statements of the documentation on one connection, which does not wait for locks. @param meanwhile runs
   * after each statement
   */
  const remove = async (meanwhile = async () => {}): Promise<void> => {
    if (kind === 'PostgreSQL') {
      const client = new pg.Client(world.server.url);
      await client.connect();
      await client.query("SET lock_timeout = '1s'");
      await client.query('BEGIN');
      await client.query(postgresScript);
      await meanwhile();
      await client.query('COMMIT');
      return client.end();
    }
    const connection = await mysql.createConnection(world.server.url);
    await connection.query('SET SESSION innodb_lock_wait_timeout = 1');
    for (const statement of mysqlScript.split(';\n').filter((text) => text.trim() !== '')) {
      await connection.query(statement);
      await meanwhile();
    }
    return connection.end();
  };

  const age = (...names: string[]) => {
    const all = names.map((name) => `'lock:${name}'`).join(', ');
    return query(
      world.server,
      `UPDATE distributed_lock_state SET since = now() - interval '8 days' WHERE lock_name IN (${all})`,
      `UPDATE distributed_lock_state SET since = since - 8 * 86400000000 WHERE lock_name IN (${all})`,
    );
  };

  const namesIn = async (table: string): Promise<string[]> => {
    const text = `SELECT lock_name AS name FROM ${table}`;
    const rows = await query(world.server, text, text);
    return rows.map(({ name }) => String(name).replace('lock:', '')).sort();
  };

  it('are those that nobody has used for long; tokens continue to grow', async () => {
    const locks = world.service();
    const [used, old] = [world.name(), world.name()];
    await (await locks.acquire(used)).release();
    const before = await locks.acquire(old);
    await before.release();
    await age(old);
    // The token is of this moment, but it has to be in the past.
    await sleep(1_500);
    await remove();
    expect(await namesIn('distributed_lock')).toEqual([used]);
    expect(await namesIn('distributed_lock_state')).toEqual([used]);
    const after = await locks.acquire(old);
    expect(after.fencingToken).toBeGreaterThan(before.fencingToken);
    await after.release();
  });

  it('are not those that are held, and neither these nor others are waited for', async () => {
    const [locks, other] = [world.service(), world.service()];
    const free = [world.name(), world.name(), world.name()];
    const [held, used] = [world.name(), world.name()];
    for (const name of [...free, used]) await (await locks.acquire(name)).release();
    const lease = await locks.acquire(held);
    await age(held, ...free);
    await sleep(1_500);
    const before = await namesIn('distributed_lock');
    await remove(async () => {
      const taken = await other.tryAcquire(used);
      expect(taken).not.toBeNull();
      await taken?.release();
      expect(await other.tryAcquire(held)).toBeNull();
    });
    const kept = before.filter((name) => !free.includes(name));
    expect(await namesIn('distributed_lock')).toEqual(kept);
    expect(await namesIn('distributed_lock_state')).toEqual(expect.arrayContaining([held, used]));
    for (const name of free) expect(await namesIn('distributed_lock_state')).not.toContain(name);
    expect(lease.held).toBe(true);
    const next = other.acquire(held);
    await lease.release();
    expect((await next).fencingToken).toBeGreaterThan(lease.fencingToken);
    await (await next).release();
  });
});
