import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { until } from '../support/until.js';
import { query } from './sessions.js';
import { openSqlWorld } from './sql-world.js';

/**
 * How long the ten callers wait, in seconds, and which part at the beginning and at the end is compared.
 * `VACUUM_SECONDS=60` is the long form.
 */
const SECONDS = Number(process.env.VACUUM_SECONDS ?? 15);
const PART = SECONDS < 30 ? 4 : 10;
const WAITERS = 10;

describe('PostgreSQL, while ten processes wait for an advisory lock that is held', () => {
  const world = openSqlWorld('PostgreSQL', 'advisoryLocks');
  const ask = (sql: string) => query(world.server, sql, '');

  it('removes dead rows that are older than ten seconds, and passes a hot lock on as fast as before', async () => {
    await ask('CREATE TABLE stock AS SELECT generate_series(1, 10000) AS id');
    await world.server.asAdmin('VACUUM stock');
    const name = world.name();
    const lease = await world.service().acquire(name);
    const waiting = Array.from({ length: WAITERS }, () => world.service().acquire(name));
    const hot = world.name();
    /** For each second, how often the lock was passed on, and how often the server answered a query meanwhile. */
    const passed: number[] = [];
    const answered: number[] = [];
    let isOver = false;
    const callers = [world.service(), world.service()].map(async (locks) => {
      while (!isOver) {
        await (await locks.acquire(hot)).release();
        passed[passed.length - 1]++;
      }
    });
    const asker = async () => {
      const client = new pg.Client(world.server.url);
      await client.connect();
      while (!isOver) {
        await client.query('SELECT 1');
        answered[answered.length - 1]++;
      }
      await client.end();
    };
    for (let second = 0; second < SECONDS; second++) {
      passed.push(0);
      answered.push(0);
      if (second === 0) callers.push(asker());
      await sleep(1_000);
      if (second === 2) await ask('DELETE FROM stock');
    }
    isOver = true;
    await Promise.all(callers);
    // All its rows are dead. VACUUM returns its pages if it may remove them.
    await until(async () => {
      await world.server.asAdmin('VACUUM stock');
      const [{ size }] = await ask("SELECT pg_relation_size('stock') AS size");
      return Number(size) === 0;
    }, 3_000);
    const [{ oldest }] = await ask(
      "SELECT coalesce(max(extract(epoch from clock_timestamp() - xact_start)), 0) AS oldest FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND backend_type = 'client backend'",
    );
    expect(Number(oldest)).toBeLessThan(7);
    // The queries say how fast the machine was.
    const sum = (counts: readonly number[]) => counts.reduce((a, b) => a + b, 0);
    const rate = (from: number, to?: number) => sum(passed.slice(from, to)) / sum(answered.slice(from, to));
    const [first, last] = [rate(0, PART), rate(-PART)];
    if (process.env.VACUUM_SECONDS !== undefined) console.log(`${passed}\n${answered}\n${last / first}`);
    expect(last).toBeGreaterThan(0.5 * first);
    await lease.release();
    await Promise.all(waiting.map(async (next) => (await next).release()));
  }, 120_000);
});
