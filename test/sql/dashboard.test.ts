import { rowLocks } from '../../lib/sql.js';
import { openDashboard } from '../dashboard/dashboard-app.js';
import { SQL_SERVERS } from '../support/servers/sql/sql-server.js';
import { until } from '../support/until.js';
import { openSqlWorld } from './sql-world.js';

describe.each(SQL_SERVERS)('the dashboard of row locks on %s', (kind) => {
  const world = openSqlWorld(kind);

  it('shows holders and waiters, and releases a lock by force', async () => {
    const backend = rowLocks({ url: world.server.url, createTable: true });
    const app = await openDashboard({ locks: { backend }, dashboard: { readOnly: false } });
    try {
      const shop = world.service({}, { applicationName: 'shop-2' });
      const name = world.name();
      const held = await shop.acquire(name, { group: 'OrdersService.pay' });
      const waiting = shop.acquire(name);
      waiting.catch(() => {});
      const row = async () => (await app.board(`?search=${name}`)).locks.rows[0];
      await until(async () => (await row())?.waiting === 1 && (await row()).owners[0].method !== '', 30_000);
      expect(await row()).toMatchObject({
        name,
        type: 'exclusive',
        owners: [{ owner: held.owner, application: 'shop-2', method: 'OrdersService.pay', atLeast: false }],
      });
      expect(await app.release(name, { reason: 'the worker hangs', owners: [held.owner] })).toEqual({ status: 200 });
      await (await waiting).release();
    } finally {
      await app.close();
    }
  });
});
