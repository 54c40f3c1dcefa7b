import pg from 'pg';
import { LockUnavailableError } from '../../lib/engine/errors.js';
import { hasPgbouncer, type Pgbouncer, startPgbouncer } from '../support/servers/sql/pgbouncer.js';
import { openSqlWorld } from './sql-world.js';

/** The one session that a pooler has, or all of them. */
const POOLS = [
  ['default_pool_size = 1'],
  ['default_pool_size = 20'],
  ['default_pool_size = 20', 'server_round_robin = 1'],
];

const SETTINGS =
  "SELECT setting FROM pg_settings WHERE name IN ('synchronous_commit', 'lock_timeout', 'statement_timeout', 'default_transaction_isolation', 'default_transaction_read_only', 'idle_session_timeout', 'client_connection_check_interval')";

(hasPgbouncer ? describe : describe.skip).each(['rowLocks', 'advisoryLocks'] as const)(
  '%s behind pgbouncer',
  (which) => {
    const world = openSqlWorld('PostgreSQL', which);
    let pgbouncer: Pgbouncer | undefined;
    afterEach(() => pgbouncer?.stop());

    it.each(POOLS)('are refused where it shares sessions between transactions: %s %s', async (...options) => {
      pgbouncer = await startPgbouncer(world.server, 'transaction', options);
      // The application has sessions of its own in the pool.
      const application = new pg.Pool({ connectionString: pgbouncer.url, max: 5 });
      const ask = (sql: string) => Promise.all([1, 2, 3, 4, 5].map(() => application.query(sql)));
      const [{ rows: before }] = await ask(SETTINGS);
      const locks = world.service({ url: pgbouncer.url });
      const refused = locks.acquire(world.name(), { waitTime: 10_000 });
      await expect(refused).rejects.toThrow(LockUnavailableError);
      await expect(refused).rejects.toThrow(/a pooler shares sessions between transactions.*session pooling/);
      await expect(locks.list()).rejects.toThrow(/a pooler shares sessions/);
      for (const { rows } of await ask(SETTINGS)) expect(rows).toEqual(before);
      await application.end();
    });

    it('are refused while others use it', async () => {
      pgbouncer = await startPgbouncer(world.server, 'transaction');
      const application = new pg.Pool({ connectionString: pgbouncer.url, max: 8 });
      let isOver = false;
      const busy = Array.from({ length: 8 }, async () => {
        while (!isOver) await application.query('SELECT pg_sleep(random() / 100)');
      });
      for (let round = 0; round < 5; round++) {
        const refused = world.service({ url: pgbouncer.url }).acquire(world.name(), { waitTime: 10_000 });
        await expect(refused).rejects.toThrow(/a pooler shares sessions between transactions/);
      }
      isOver = true;
      await Promise.all(busy);
      await application.end();
    });

    it('are kept where each client has a session for as long as it is connected, without settings that stay', async () => {
      pgbouncer = await startPgbouncer(world.server, 'session', ['server_reset_query =']);
      const [ann, bob] = [world.service({ url: pgbouncer.url }), world.service({ url: pgbouncer.url })];
      const name = world.name();
      const lease = await ann.acquire(name);
      expect(await bob.tryAcquire(name)).toBeNull();
      const next = bob.acquire(name);
      await lease.release();
      await (await next).release();
      await Promise.all([ann.close(), bob.close()]);
      const application = new pg.Pool({ connectionString: pgbouncer.url, max: 3 });
      // All sessions that were used: a statement that takes a while makes each of them answer.
      const left = await Promise.all(
        [1, 2, 3].map(() => application.query(`${SETTINGS} AND pg_sleep(0.1) IS NOT NULL`)),
      );
      const fresh = new pg.Client(world.server.url);
      await fresh.connect();
      const { rows: defaults } = await fresh.query(SETTINGS);
      await fresh.end();
      for (const { rows } of left) expect(rows).toEqual(defaults);
      await application.end();
    });
  },
);
