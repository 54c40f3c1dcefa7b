import { setTimeout as sleep } from 'node:timers/promises';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { nodeRuntime } from '../../lib/engine/node-runtime.js';
import { mysqlPoolDriver } from '../../lib/sql/driver/mysql-driver.js';
import { postgresPoolDriver } from '../../lib/sql/driver/postgres-driver.js';
import { SqlConnection } from '../../lib/sql/driver/sql-connection.js';
import { until } from '../support/until.js';
import { startAgain } from './sessions.js';
import { ALL_SQL_LOCKS } from './sql-locks.js';
import { openSqlWorld } from './sql-world.js';

const CONNECTIONS = 3;

describe.each(ALL_SQL_LOCKS)('a pool that was given, %s on %s', (which, kind) => {
  const world = openSqlWorld(kind, which);
  const isPostgres = kind === 'PostgreSQL';

  const makePool = () => {
    const pool = isPostgres
      ? new pg.Pool({ connectionString: world.server.url, max: CONNECTIONS + 1 })
      : mysql.createPool({ uri: world.server.url, connectionLimit: CONNECTIONS + 1 });
    // pg's pool reports errors of idle connections here, and an error without a listener ends the process.
    if (pool instanceof pg.Pool) pool.on('error', () => {});
    return pool;
  };
  const inUse = (pool: ReturnType<typeof makePool>): number => {
    if (pool instanceof pg.Pool) return pool.totalCount;
    return (pool.pool as unknown as { _allConnections: { length: number } })._allConnections.length;
  };

  it('gets a connection back exactly once, whoever sees its end first', async () => {
    const pool = makePool();
    const driver = isPostgres
      ? postgresPoolDriver(pool as pg.Pool, 'given')
      : mysqlPoolDriver((pool as mysql.Pool).pool as never, 'given');
    const open = async () => new SqlConnection(await driver.connect(), nodeRuntime, { limit: 2_000 });
    const ways: ((connection: SqlConnection) => void)[] = [
      (connection) => connection.close(),
      (connection) => connection.destroy(),
    ];
    for (const first of ways)
      for (const second of ways) {
        const connection = await open();
        first(connection);
        second(connection);
        await until(() => inUse(pool) === 0);
      }
    const [left, other] = [await open(), await open()];
    await world.server.kill();
    await until(() => left.ended !== undefined && other.ended !== undefined);
    other.destroy();
    await until(() => inUse(pool) === 0);
    await startAgain(world.server);
    await pool.end();
  });

  it('is not used up by restarts of the server, nor by waits and locks that they end', async () => {
    const pool = makePool();
    const locks = world.service({ pool: pool as never, connections: CONNECTIONS });
    const holder = world.service();
    const unhandled: unknown[] = [];
    const hear = (reason: unknown) => void unhandled.push(reason);
    process.on('unhandledRejection', hear);
    for (let restart = 0; restart < 3; restart++) {
      const name = world.name();
      const own = await holder.acquire(name, { waitTime: 20_000 });
      const lease = await locks.acquire(world.name(), { waitTime: 20_000 });
      const abort = new AbortController();
      const waits = [locks.acquire(name, { signal: abort.signal }), locks.acquire(name, { waitTime: 300 })];
      const over = Promise.allSettled(waits);
      await sleep(100);
      await world.server.kill();
      await until(() => lease.signal.aborted && own.signal.aborted);
      abort.abort();
      await over;
      await startAgain(world.server);
    }
    const all = Array.from({ length: CONNECTIONS }, () => locks.acquire(world.name(), { waitTime: 20_000 }));
    for (const lease of await Promise.all(all)) await lease.release();
    await locks.close();
    await until(() => inUse(pool) === 0);
    await pool.end();
    process.off('unhandledRejection', hear);
    expect(unhandled).toEqual([]);
  }, 120_000);
});
