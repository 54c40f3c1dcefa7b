import { LockUnavailableError } from '../../lib/engine/errors.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { startPostgresReplica } from '../support/servers/sql/postgres-replica.js';
import { type SqlServer, startSqlServer } from '../support/servers/sql/sql-server.js';
import { until } from '../support/until.js';
import { query, startAgain } from './sessions.js';
import { SqlWorld } from './sql-world.js';

describe.each(['rowLocks', 'advisoryLocks'] as const)(
  'fencing tokens that a crash of PostgreSQL loses, %s',
  (which) => {
    const world = new SqlWorld('PostgreSQL', which);
    const { table } = world;
    let replica: SqlServer | undefined;
    /** Ends the process of {@link stopWriter}, which does not notice that its server has ended. */
    let killWriter = () => {};
    beforeEach(async () => {
      world.server = await startSqlServer('PostgreSQL');
      await world.server.asAdmin('GRANT pg_read_all_stats TO locks');
    }, 60_000);
    afterEach(async () => {
      await world.tidy();
      await world.server.stop();
      killWriter();
      await replica?.stop();
      replica = undefined;
    }, 60_000);

    const read = async (server: SqlServer, sql: string) => Number((await query(server, sql, ''))[0].value);
    const lastToken = (server: SqlServer) => read(server, `SELECT max(token) AS value FROM ${table}_state`);
    const limit = (server: SqlServer) => read(server, `SELECT token_limit AS value FROM ${table}_floor`);

    /** Sets another clock for the sessions of the tests' user that are opened from now on. */
    const setClockBack = () =>
      world.server.asAdmin(
        'CREATE SCHEMA fake',
        `CREATE FUNCTION fake.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT pg_catalog.clock_timestamp() - interval '1 minute' $$`,
        'GRANT USAGE ON SCHEMA fake TO locks',
        'ALTER ROLE locks SET search_path = fake, public, pg_catalog',
      );

    const tokensOf = async (locks: LockService, names: readonly string[]): Promise<number[]> => {
      const tokens: number[] = [];
      for (let round = 0; round < 10; round++)
        for (const name of names) {
          const lease = await locks.acquire(name);
          tokens.push(lease.fencingToken);
          await lease.release();
        }
      return tokens;
    };

    /** From now on, the server writes only what a commit waits for. */
    const stopWriter = async () => {
      const pid = await read(
        world.server,
        "SELECT pid AS value FROM pg_stat_activity WHERE backend_type = 'walwriter'",
      );
      process.kill(pid, 'SIGSTOP');
      killWriter = () => {
        process.kill(pid, 'SIGKILL');
        killWriter = () => {};
      };
    };

    const killOneBackend = async () => {
      const pid = await read(world.server, "SELECT pid AS value FROM pg_stat_activity WHERE usename = 'locks' LIMIT 1");
      process.kill(pid, 'SIGKILL');
      killWriter();
      await until(() => /all server processes terminated; reinitializing/.test(world.server.log));
      await until(() => lastToken(world.server).then(Boolean, () => false));
      return world.server;
    };
    const killServer = async () => {
      await world.server.kill();
      killWriter();
      await startAgain(world.server);
      return world.server;
    };
    const promote = async () => {
      const standby = replica as SqlServer;
      await world.server.kill();
      killWriter();
      await standby.asAdmin('SELECT pg_promote()');
      return standby;
    };

    it.each([
      ['kill -9 of one of its processes', killOneBackend],
      ['kill -9 of the server', killServer],
      ['the promotion of a replica', promote],
    ])('are not given again, with the clock set back by a minute: %s', async (_what, fault) => {
      const locks = world.service();
      const [old, fresh] = [world.name(), world.name()];
      await tokensOf(locks, [old]);
      await setClockBack();
      if (fault === promote) {
        const standby = await startPostgresReplica(world.server);
        replica = standby;
        await until(async () => (await limit(standby)) === (await limit(world.server)));
      }
      await stopWriter();
      const given = Math.max(...(await tokensOf(locks, [old, fresh])));
      const server = await fault();
      // Otherwise this test would show nothing.
      expect(await lastToken(server)).toBeLessThan(given);
      const [again, other] = [server, server].map(({ url }) => world.service({ url }));
      const services = [again, other, ...(server === world.server ? [locks] : [])];
      for (const name of [old, fresh]) {
        const later: number[] = [];
        for (const service of services) later.push(...(await tokensOf(service, [name])));
        expect(Math.min(...later)).toBeGreaterThan(given);
        expect(new Set(later).size).toBe(services.length * 10);
      }
    });

    it('are below a limit also when several processes find their loss at once', async () => {
      const first = world.service();
      const name = world.name();
      const given = Math.max(...(await tokensOf(first, [name])));
      await killServer();
      const services = Array.from({ length: 6 }, () => world.service());
      const later = (await Promise.all(services.map((locks) => tokensOf(locks, [name])))).flat();
      expect(Math.min(...later)).toBeGreaterThan(given);
      expect(new Set(later).size).toBe(60);
      // One of them has raised it.
      expect((await limit(world.server)) - Math.min(...later)).toBeLessThanOrEqual(20_000_000);
    });

    it('are replaced where the tables are of the layout before: they are made, or their absence is explained', async () => {
      const name = world.name();
      const given = Math.max(...(await tokensOf(world.service(), [name])));
      await world.tidy();
      await query(world.server, `DROP TABLE ${table}_epoch, ${table}_floor`, '');
      const refused = world.service({ createTable: false }).acquire(name, { waitTime: 3_000 });
      await expect(refused).rejects.toThrow(LockUnavailableError);
      await expect(refused).rejects.toThrow(new RegExp(`CREATE UNLOGGED TABLE IF NOT EXISTS "${table}_epoch"`));
      expect(Math.min(...(await tokensOf(world.service(), [name])))).toBeGreaterThan(given);
    });
  },
);
