import { readFileSync } from 'node:fs';
import { SQL_SERVERS } from '../support/servers/sql/sql-server.js';
import { query } from './sessions.js';
import { openSqlWorld } from './sql-world.js';

const [postgres, mysql] = [...readFileSync('docs/row-locks.md', 'utf8').matchAll(/```sql\n([^`]*?)```/g)].map(
  ([, sql]) => sql,
);

describe.each(SQL_SERVERS)('rows that are removed as the documentation says, %s', (kind) => {
  const world = openSqlWorld(kind);

  it('are those that nobody has used for long; tokens grow on', async () => {
    const locks = world.service();
    const [used, old] = [world.name(), world.name()];
    await (await locks.acquire(used)).release();
    const before = await locks.acquire(old);
    await before.release();
    await query(
      world.server,
      `UPDATE distributed_lock_state SET since = now() - interval '8 days' WHERE lock_name = 'lock:${old}'`,
      `UPDATE distributed_lock_state SET since = since - 8 * 86400000000 WHERE lock_name = 'lock:${old}'`,
    );
    // The token is of now: it has to be in the past.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    if (kind === 'PostgreSQL') await query(world.server, postgres, '');
    else await world.server.asAdmin(...mysql.split(';\n').filter((statement) => statement.trim() !== ''));
    for (const table of ['distributed_lock', 'distributed_lock_state']) {
      const count = `SELECT count(*) AS n FROM ${table}`;
      expect(Number((await query(world.server, count, count))[0].n)).toBe(1);
    }
    const after = await locks.acquire(old);
    expect(after.fencingToken).toBeGreaterThan(before.fencingToken);
    await after.release();
  });
});
