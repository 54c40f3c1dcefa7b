import { query } from './sessions.js';
import { ALL_SQL_LOCKS } from './sql-locks.js';
import { openSqlWorld } from './sql-world.js';

/** What an administrator may have set for all sessions, and how to undo it. */
const DEFAULTS = {
  PostgreSQL: [
    ["ALTER ROLE locks SET default_transaction_isolation = 'serializable'", 'ALTER ROLE locks RESET ALL'],
    ['ALTER ROLE locks SET default_transaction_read_only = on', 'ALTER ROLE locks RESET ALL'],
  ],
  MariaDB: [
    ['SET GLOBAL autocommit = 0', 'SET GLOBAL autocommit = 1'],
    ['SET GLOBAL completion_type = 2', 'SET GLOBAL completion_type = 0'],
    ["SET GLOBAL tx_isolation = 'SERIALIZABLE'", "SET GLOBAL tx_isolation = 'REPEATABLE-READ'"],
    ['SET GLOBAL tx_read_only = 1', 'SET GLOBAL tx_read_only = 0'],
  ],
  MySQL: [
    ['SET GLOBAL autocommit = 0', 'SET GLOBAL autocommit = 1'],
    ['SET GLOBAL completion_type = 2', 'SET GLOBAL completion_type = 0'],
    ["SET GLOBAL transaction_isolation = 'SERIALIZABLE'", "SET GLOBAL transaction_isolation = 'REPEATABLE-READ'"],
    ['SET GLOBAL transaction_read_only = 1', 'SET GLOBAL transaction_read_only = 0'],
  ],
} as const;

describe.each(ALL_SQL_LOCKS)('the defaults of a server, %s on %s', (which, kind) => {
  const world = openSqlWorld(kind, which);

  it.each(DEFAULTS[kind])('change nothing about locks and tokens: %s', async (set, reset) => {
    await (await world.service().acquire(world.name())).release();
    await world.tidy();
    const name = world.name();
    await world.server.asAdmin(set);
    try {
      const [ann, bob] = [world.service({ createTable: false }), world.service({ createTable: false })];
      const tokens: number[] = [];
      for (const locks of [ann, bob, ann, bob]) {
        const lease = await locks.acquire(name, { waitTime: 10_000 });
        tokens.push(lease.fencingToken);
        // It is committed, so it outlives this process.
        const text = `SELECT token FROM ${world.table}_state WHERE lock_name = 'lock:${name}'`;
        const [row] = await query(world.server, text, text);
        expect(Number(row.token)).toBeGreaterThanOrEqual(lease.fencingToken);
        await lease.release();
      }
      expect([...new Set(tokens)].sort((a, b) => a - b)).toEqual(tokens);
    } finally {
      await world.server.asAdmin(reset);
    }
  });
});
