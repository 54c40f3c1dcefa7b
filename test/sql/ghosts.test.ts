import { setTimeout as sleep } from 'node:timers/promises';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { query } from './sessions.js';
import { ALL_SQL_LOCKS } from './sql-locks.js';
import { openSqlWorld } from './sql-world.js';

describe.each(ALL_SQL_LOCKS)('a holder that could not be struck out, %s on %s', (which, kind) => {
  const world = openSqlWorld(kind, which);

  it('is not shown any more, so that a release by force cannot hit the next user of its session', async () => {
    const [ann, bob, name] = [world.service({ connections: 1 }), world.service(), world.name()];
    const lease = await ann.acquire(name);
    const isPostgres = kind === 'PostgreSQL';
    const other = isPostgres ? new pg.Client(world.server.url) : await mysql.createConnection(world.server.url);
    await other.connect();
    const run = (sql: string): Promise<unknown> => (other as pg.Client).query(sql);
    await run('BEGIN');
    await run(`SELECT 1 FROM ${world.table}_state WHERE lock_name = 'lock:${name}' FOR UPDATE`);
    await lease.release();
    await run('ROLLBACK');
    const later = await ann.acquire(world.name());
    expect((await bob.inspect(name)).owners).toEqual([]);
    expect(await bob.forceRelease(name)).toBe(false);
    expect(later.held).toBe(true);
    await later.release();
    await other.end();
  });

  it('is struck out when its note is not locked any more, and its session is kept', async () => {
    const [ann, name] = [world.service({ connections: 1 }), world.name()];
    const lease = await ann.acquire(name);
    const ids = async () => {
      const rows = await query(
        world.server,
        "SELECT pid AS id FROM pg_stat_activity WHERE usename = 'locks' AND pid <> pg_backend_pid()",
        'SELECT ID AS id FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID()',
      );
      return rows.map(({ id }) => Number(id));
    };
    const before = await ids();
    const other =
      kind === 'PostgreSQL' ? new pg.Client(world.server.url) : await mysql.createConnection(world.server.url);
    await other.connect();
    const run = (sql: string): Promise<unknown> => (other as pg.Client).query(sql);
    await run('BEGIN');
    await run(`SELECT 1 FROM ${world.table}_state WHERE lock_name = 'lock:${name}' FOR UPDATE`);
    const released = lease.release();
    // Longer than the server lets a statement wait for it.
    await sleep(1_500);
    await run('ROLLBACK');
    await released;
    const later = await ann.acquire(world.name());
    expect(await ids()).toEqual(expect.arrayContaining(before));
    expect((await ann.inspect(name)).locked).toBe(false);
    await later.release();
    await other.end();
  });
});
