import { LockUnavailableError } from '../../lib/engine/errors.js';
import { createLockService } from '../../lib/service/create-lock-service.js';
import { rowLocks } from '../../lib/sql.js';
import { RecordingLogger } from '../support/lock-world.js';
import { errorOf } from '../support/section.js';
import { hasGalera, startGalera } from '../support/servers/sql/galera.js';
import { startPostgresReplica } from '../support/servers/sql/postgres-replica.js';
import type { SqlServer } from '../support/servers/sql/sql-server.js';
import { until } from '../support/until.js';
import { query } from './sessions.js';
import { SQL_LOCKS, type SqlLocks } from './sql-locks.js';
import { openSqlWorld } from './sql-world.js';

(hasGalera ? describe : describe.skip)('row locks on a Galera cluster', () => {
  let nodes: readonly SqlServer[] = [];
  beforeAll(async () => {
    nodes = await startGalera();
  }, 90_000);
  afterAll(() => Promise.all(nodes.map((node) => node.stop())));

  const on = (node: SqlServer, options?: { readonly singlePrimary: boolean }) =>
    createLockService({
      backend: rowLocks({ url: node.url, createTable: true, ...options }),
      logger: new RecordingLogger(),
      shutdownTimeout: 100,
    });

  it('are refused, because each node would give a lock to its own holder', async () => {
    const both = nodes.map((node) => on(node));
    for (let round = 0; round < 20; round++) {
      const taken = await Promise.allSettled(both.map((locks) => locks.acquire(`order:${round}`, { waitTime: 2_000 })));
      const held = taken.filter(({ status }) => status === 'fulfilled');
      expect(held.length).toBeLessThan(2);
      for (const attempt of taken) {
        if (attempt.status === 'fulfilled') continue;
        expect(attempt.reason).toBeInstanceOf(LockUnavailableError);
        expect(attempt.reason.message).toMatch(/node of a Galera cluster \(wsrep_on\).*singlePrimary: true/);
      }
    }
    await Promise.all(both.map((locks) => locks.close()));
  });

  it('are kept for those who say that all clients use one node', async () => {
    const [ann, bob] = [on(nodes[0], { singlePrimary: true }), on(nodes[0], { singlePrimary: true })];
    const lease = await ann.acquire('order');
    expect(await bob.tryAcquire('order')).toBeNull();
    const next = bob.acquire('order');
    await lease.release();
    const later = await next;
    expect(later.fencingToken).toBeGreaterThan(lease.fencingToken);
    await later.release();
    await Promise.all([ann.close(), bob.close()]);
  });
});

describe.each<SqlLocks>(['rowLocks', 'advisoryLocks'])('%s on a hot standby of PostgreSQL', (which) => {
  const world = openSqlWorld('PostgreSQL', which);

  it('are refused with the reason, whether or not the tables are there', async () => {
    const primary = world.service();
    await primary.connect();
    const standby = await startPostgresReplica(world.server);
    await until(() =>
      query(standby, `SELECT count(*) FROM ${world.table}_state`, '').then(
        () => true,
        () => false,
      ),
    );
    for (const createTable of [true, false]) {
      const locks = createLockService({
        backend: SQL_LOCKS[which]({ url: standby.url, createTable }),
        logger: new RecordingLogger(),
      });
      const refused = errorOf(locks.acquire('order', { waitTime: 2_000 }));
      const error = (await refused) as Error;
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toMatch(/this server is a standby .*connect to the primary/);
      expect(error.message).not.toContain('CREATE TABLE');
      expect(await locks.health()).toMatchObject({ healthy: false, problems: [expect.stringMatching(/standby/)] });
      await locks.close();
    }
    await standby.stop();
  }, 60_000);
});
