import mysql from 'mysql2/promise';
import pg from 'pg';
import { LockUnavailableError } from '../../lib/engine/errors.js';
import { ALL_SQL_LOCKS } from './sql-locks.js';
import { openSqlWorld } from './sql-world.js';

describe.each(ALL_SQL_LOCKS)('a given pool that others have used up, %s on %s', (which, kind) => {
  const world = openSqlWorld(kind, which);

  it('is told to a caller that must not wait, and gives its connections back when they come late', async () => {
    const isPostgres = kind === 'PostgreSQL';
    const pool = isPostgres
      ? new pg.Pool({ connectionString: world.server.url, max: 3 })
      : mysql.createPool({ uri: world.server.url, connectionLimit: 3 });
    const take = () => (isPostgres ? (pool as pg.Pool).connect() : (pool as mysql.Pool).getConnection());
    const others = await Promise.all([take(), take(), take()]);
    const locks = world.service({ pool: pool as never, connections: 2 });
    const refused = locks.tryAcquire(world.name());
    await expect(refused).rejects.toThrow(LockUnavailableError);
    await expect(refused).rejects.toThrow(/no connection of the pool .* is free/);
    for (const other of others) other.release();
    await (await locks.acquire(world.name(), { waitTime: 20_000 })).release();
    await locks.close();
    await Promise.all((await Promise.all([take(), take(), take()])).map((own) => own.release()));
    await pool.end();
  }, 30_000);
});
