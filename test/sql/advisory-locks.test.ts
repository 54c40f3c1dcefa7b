import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { LockUnavailableError } from '../../lib/engine/errors.js';
import { nodeRuntime } from '../../lib/engine/node-runtime.js';
import { postgresDriver } from '../../lib/sql/driver/postgres-driver.js';
import { SqlConnection } from '../../lib/sql/driver/sql-connection.js';
import { PostgresTokens } from '../../lib/sql/server/postgres-tokens.js';
import { quoteTable } from '../../lib/sql/server/table-name.js';
import { PostgresAdvisoryLocks } from '../../lib/sql/session-locks/postgres-advisory-locks.js';
import { rowLocks } from '../../lib/sql.js';
import { SQL_SERVERS } from '../support/servers/sql/sql-server.js';
import { until } from '../support/until.js';
import { countSessions, lockState, query } from './sessions.js';
import { openSqlWorld, type SqlWorld } from './sql-world.js';

/** How many advisory locks the sessions of the tests' user hold. */
async function heldIn({ server }: SqlWorld): Promise<number> {
  const [{ n }] = await query(
    server,
    "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory' AND granted",
    // MariaDB lists locks of GET_LOCK in no table.
    'SELECT 0 AS n',
  );
  return Number(n);
}

/** The sessions that wait for an advisory lock. */
async function waitingIn({ server }: SqlWorld): Promise<readonly number[]> {
  const rows = await query(
    server,
    "SELECT pid AS id FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
    "SELECT ID AS id FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT GET_LOCK%'",
  );
  return rows.map(({ id }) => Number(id));
}

describe.each(SQL_SERVERS)('advisory locks, %s', (kind) => {
  const world = openSqlWorld(kind, 'advisoryLocks');

  const [onPostgres, onMysql] = kind === 'PostgreSQL' ? [it, it.skip] : [it.skip, it];

  const expectFree = async (name: string) => {
    const lease = await world.service().acquire(name, { waitTime: 3_000 });
    await lease.release();
    await until(async () => (await heldIn(world)) === 0);
  };

  it('are not left behind when their token could not be written', async () => {
    const [ann, name] = [world.service(), world.name()];
    await (await ann.acquire(name)).release();
    const unlock = await lockState(world, name);
    await expect(ann.acquire(name, { waitTime: 0 })).rejects.toThrow(LockUnavailableError);
    await unlock();
    await expectFree(name);
  });

  it('are not left behind by waits that are cancelled from outside while the lock becomes free', async () => {
    const [ann, bob] = [world.service(), world.service()];
    for (let round = 0; round < 10; round++) {
      const name = world.name();
      const lease = await ann.acquire(name);
      const waiting = bob.acquire(name, { waitTime: 20_000 });
      await until(async () => (await waitingIn(world)).length === 1);
      const [id] = await waitingIn(world);
      await Promise.all([
        lease.release(),
        query(world.server, `SELECT pg_cancel_backend(${id})`, `KILL QUERY ${id}`).catch(() => {}),
      ]);
      await (await waiting).release();
      await expectFree(name);
    }
  }, 60_000);

  it('are waited for by statements that end, and ask anew', async () => {
    const [ann, bob] = [world.service(), world.service()];
    const name = world.name();
    const lease = await ann.acquire(name);
    const waiting = bob.acquire(name);
    const age = async () => {
      const [row] = await query(
        world.server,
        "SELECT extract(epoch from clock_timestamp() - query_start) AS age FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
        "SELECT TIME AS age FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT GET_LOCK%'",
      );
      return Number(row?.age ?? 0);
    };
    const ages: number[] = [];
    for (let second = 0; second < 8; second++) {
      await sleep(1_000);
      ages.push(await age());
    }
    expect(Math.max(...ages)).toBeGreaterThan(2);
    expect(Math.max(...ages)).toBeLessThan(7);
    expect(await waitingIn(world)).toHaveLength(1);
    await lease.release();
    await (await waiting).release();
    expect(world.logger.warnings).toEqual([]);
    await expectFree(name);
  }, 30_000);

  it('are one lock, by whatever path the table is found', async () => {
    const schema = kind === 'PostgreSQL' ? 'public' : 'locks';
    const [ann, bob, name] = [world.service(), world.service({ table: `${schema}.advisory_lock` }), world.name()];
    const lease = await ann.acquire(name);
    expect(await bob.tryAcquire(name)).toBeNull();
    expect((await bob.inspect(name)).owners).toMatchObject([{ owner: lease.owner }]);
    await lease.release();
  });

  it('have growing tokens after their rows were removed, by the statement of the documentation', async () => {
    const [locks, name] = [world.service(), world.name()];
    const first = await locks.acquire(name);
    await first.release();
    const [ofPostgres, ofMysql] =
      readFileSync('docs/locks-in-sql.md', 'utf8').match(/DELETE FROM advisory_lock_state[^`]*/g) ?? [];
    const old = kind === 'PostgreSQL' ? "since - interval '8 days'" : 'since - 8 * 86400 * 1000000';
    const age = `UPDATE advisory_lock_state SET since = ${old} WHERE lock_name = 'lock:${name}'`;
    await query(world.server, age, age);
    const count = `SELECT count(*) AS n FROM advisory_lock_state WHERE lock_name = 'lock:${name}'`;
    // Not before the clock has passed its token.
    await until(async () => {
      await query(world.server, ofPostgres as string, ofMysql as string);
      return Number((await query(world.server, count, count))[0].n) === 0;
    });
    const second = await locks.acquire(name);
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    await second.release();
  });

  it('are other locks in another table', async () => {
    const [ann, bob, name] = [world.service(), world.service({ table: 'other_locks' }), world.name()];
    const leases = [await ann.acquire(name), await bob.acquire(name, { waitTime: 5_000 })];
    for (const lease of leases) await lease.release();
  });

  it('refuse a table of row locks, which they would not exclude', async () => {
    const table = 'rows_of_others';
    const rows = rowLocks({ url: world.server.url, createTable: true, table });
    await rows.inspect('lock:order');
    await rows.close();
    const refused = world.service({ table }).acquire(world.name(), { waitTime: 3_000 });
    await expect(refused).rejects.toThrow(LockUnavailableError);
    await expect(refused).rejects.toThrow(/rows rowLocks\(\) locks.*do not exclude each other.*another table/);
  });

  // In MariaDB, wait_timeout stays that of the last lease.
  onPostgres('keep their sessions for longer than a lease while they have no lock', async () => {
    const locks = world.service({ connections: 1 }, { watchdogTimeout: 1_000 });
    const session = async (name: string) => {
      const lease = await locks.acquire(name);
      const [{ id }] = await query(world.server, "SELECT pid AS id FROM pg_locks WHERE locktype = 'advisory'", '');
      await lease.release();
      return id;
    };
    const name = world.name();
    const before = await session(name);
    await sleep(3_000);
    expect(await session(name)).toBe(before);
  });

  onMysql('are free when they are released, although their note is not withdrawn yet', async () => {
    const [ann, bob] = [world.service(), world.service()];
    const name = world.name();
    const lease = await ann.acquire(name);
    const unlock = await lockState(world, name);
    await lease.release();
    // Nobody waits for the statement that withdraws the note, so that it may begin later.
    await until(async () => {
      const [{ withdrawing }] = await query(
        world.server,
        '',
        "SELECT COUNT(*) AS withdrawing FROM information_schema.PROCESSLIST WHERE INFO LIKE 'UPDATE%SET owner = NULL%' AND ID <> CONNECTION_ID()",
      );
      return Number(withdrawing) === 1;
    });
    expect(await bob.isLocked(name)).toBe(false);
    await unlock();
    await expectFree(name);
  });

  onPostgres('get a token above one that was written while their statement was under way', async () => {
    const [locks, name] = [world.service(), world.name()];
    await (await locks.acquire(name)).release();
    const other = new pg.Client(world.server.url);
    await other.connect();
    await other.query('BEGIN');
    const { rows } = await other.query(
      'UPDATE advisory_lock_state SET token = token + 5000000 WHERE lock_name = $1 RETURNING token',
      [`lock:${name}`],
    );
    const acquired = locks.acquire(name);
    await until(async () => (await countSessions(world.server)).waiting === 1);
    await other.query('COMMIT');
    const lease = await acquired;
    expect(lease.fencingToken).toBe(Number(rows[0].token) + 1);
    // The lock and its mark, once each.
    expect(await heldIn(world)).toBe(2);
    await lease.release();
    expect(await heldIn(world)).toBe(0);
    await other.end();
  });

  onPostgres('leave no transaction and no snapshot open while they are held', async () => {
    const lease = await world.service().acquire(world.name());
    const open = await query(
      world.server,
      "SELECT pid FROM pg_stat_activity WHERE usename = 'locks' AND pid <> pg_backend_pid() AND (xact_start IS NOT NULL OR backend_xmin IS NOT NULL)",
      '',
    );
    expect(open).toEqual([]);
    await lease.release();
  });
});

describe('a wait for an advisory lock of PostgreSQL that ends in the moment of the grant', () => {
  const world = openSqlWorld('PostgreSQL', 'advisoryLocks');

  it('has the lock, or leaves none behind', async () => {
    const tables = quoteTable('t', '"');
    const locks = new PostgresAdvisoryLocks(tables, new PostgresTokens(tables));
    const open = async () => {
      const connection = await postgresDriver(world.server.url, 'test', 5_000).connect();
      const session = new SqlConnection(connection, nodeRuntime, { limit: 5_000 });
      await locks.prepareSession(session);
      return session;
    };
    const [holder, waiter] = [await open(), await open()];
    const { rows } = await waiter.run('SELECT pg_backend_pid() AS pid');
    await waiter.run('SET lock_timeout = 15');
    const outcomes = { granted: 0, over: 0 };
    for (let round = 0; round < 150; round++) {
      await locks.wait(holder, 'key', 60_000);
      const waiting = locks.wait(waiter, 'key', 60_000);
      await sleep(12 + Math.random() * 5);
      await locks.release(holder, ['key']);
      const grant = await waiting;
      const [{ n }] = await query(
        world.server,
        `SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory' AND pid = ${rows[0].pid}`,
        '',
      );
      // The lock and its mark.
      expect(Number(n)).toBe(grant === undefined ? 0 : 2);
      outcomes[grant === undefined ? 'over' : 'granted']++;
      if (grant !== undefined) expect(await locks.release(waiter, ['key'])).toBe(true);
    }
    expect(outcomes.granted).toBeGreaterThan(0);
    expect(outcomes.over).toBeGreaterThan(0);
    for (const session of [holder, waiter]) session.close();
  }, 60_000);
});
