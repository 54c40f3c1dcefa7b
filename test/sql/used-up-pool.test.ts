import mysql from 'mysql2/promise';
import pg from 'pg';
import { LockUnavailableError } from '../../lib/engine/errors.js';
import { errorOf } from '../support/section.js';
import { ALL_SQL_LOCKS } from './sql-locks.js';
import { openSqlWorld } from './sql-world.js';

describe.each(ALL_SQL_LOCKS)('a given pool that others have used up, %s on %s', (which, kind) => {
  const world = openSqlWorld(kind, which);

  const isPostgres = kind === 'PostgreSQL';
  const open = (max: number) => {
    const pool = isPostgres
      ? new pg.Pool({ connectionString: world.server.url, max })
      : mysql.createPool({ uri: world.server.url, connectionLimit: max });
    const take = () => (isPostgres ? (pool as pg.Pool).connect() : (pool as mysql.Pool).getConnection());
    return { pool, take, takeAll: (n: number) => Promise.all(Array.from({ length: n }, take)) };
  };

  it('is told to a caller that must not wait, and gives its connections back when they come late', async () => {
    const { pool, takeAll } = open(3);
    const others = await takeAll(3);
    const locks = world.service({ pool: pool as never, connections: 2 });
    const refused = locks.tryAcquire(world.name());
    await expect(refused).rejects.toThrow(LockUnavailableError);
    await expect(refused).rejects.toThrow(/no connection of the pool .* is free/);
    for (const other of others) other.release();
    await (await locks.acquire(world.name(), { waitTime: 20_000 })).release();
    await locks.close();
    for (const own of await takeAll(3)) own.release();
    await pool.end();
  }, 30_000);

  it.each([
    ['from the start', false],
    ['after the first connection', true],
  ])(
    'is no busy lock: its size is in the error, and in time (%s)',
    async (_when, isConnected) => {
      const { pool, takeAll } = open(6);
      const locks = world.service({ pool: pool as never, connections: 4 });
      if (isConnected) await locks.connect();
      const others = await takeAll(isConnected ? 5 : 6);
      for (const waitTime of [0, 300, 2_000]) {
        const started = Date.now();
        const error = (await errorOf(locks.acquire(world.name(), { waitTime }))) as Error;
        expect(error).toBeInstanceOf(LockUnavailableError);
        expect(error.message).toMatch(/given pool of at most 6 connections/);
        expect(Date.now() - started).toBeLessThan(3_500);
      }
      const { healthy, problems } = await locks.health();
      expect({ healthy, problems: problems.join() }).toEqual({
        healthy: false,
        problems: expect.stringMatching(/given pool of at most 6 connections/),
      });
      for (const other of others) other.release();
      const leases = await Promise.all([1, 2, 3, 4].map(() => locks.acquire(world.name(), { waitTime: 20_000 })));
      for (const lease of leases) await lease.release();
      await locks.close();
      for (const own of await takeAll(6)) own.release();
      await pool.end();
    },
    40_000,
  );
});
