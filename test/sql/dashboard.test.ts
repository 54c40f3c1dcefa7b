import { openDashboard } from '../dashboard/dashboard-app.js';
import { until } from '../support/until.js';
import { ALL_SQL_LOCKS } from './sql-locks.js';
import { openSqlWorld } from './sql-world.js';

describe.each(ALL_SQL_LOCKS)('the dashboard of %s on %s', (which, kind) => {
  const world = openSqlWorld(kind, which);

  it('shows holders and waiters, and releases a lock by force', async () => {
    const backend = world.backend();
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
