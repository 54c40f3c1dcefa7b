import { setTimeout as sleep } from 'node:timers/promises';
import { LockConfigurationError } from '../../lib/engine/errors.js';
import { createLockService } from '../../lib/service/create-lock-service.js';
import type { ListedLock, ListOptions } from '../../lib/service/lock-inspection.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { type DashboardApp, openDashboard } from '../dashboard/dashboard-app.js';
import { startProcess } from '../support/processes/start-process.js';
import { PASSWORD } from '../support/servers/sql/sql-server.js';
import { until } from '../support/until.js';
import { addUser, query } from './sessions.js';
import { ALL_SQL_LOCKS } from './sql-locks.js';
import { openSqlWorld } from './sql-world.js';

async function listAll(locks: LockService, options: ListOptions = {}): Promise<ListedLock[]> {
  const all: ListedLock[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await locks.list({ ...options, cursor });
    all.push(...page.locks);
    cursor = page.cursor;
    if (cursor === undefined) return all;
  }
}

const namesOf = (locks: readonly ListedLock[]) => locks.map(({ name }) => name);

describe.each(ALL_SQL_LOCKS)('locks in SQL seen from outside, %s on %s', (which, kind) => {
  const world = openSqlWorld(kind, which);

  it('lists the locks that are held, with their owners, and none that were', async () => {
    const [ann, bob] = [world.service(), world.service()];
    const before = await ann.acquire('before');
    await before.release();
    const leases = [await ann.acquire('order:1'), await bob.acquire(['order:2', 'text'], { type: 'write' })];
    const all = await listAll(ann);
    expect(namesOf(all)).toEqual(['order:1', 'order:2', 'text']);
    expect(all[0]).toMatchObject({ type: 'exclusive', owners: [{ owner: leases[0].owner, mine: true }], waiting: 0 });
    expect(all[1]).toMatchObject({ type: 'write', owners: [{ owner: leases[1].owner, mine: false }] });
    expect(all[0].remainingTime).toBeGreaterThan(10_000);
    expect(all[0].remainingTime).toBeLessThanOrEqual(30_000);
    await Promise.all(leases.map((lease) => lease.release()));
    expect(await listAll(ann)).toEqual([]);
  });

  it('never shows less than what remains of a lease, although a server may count whole seconds', async () => {
    const [holder, watcher, name, leaseTime] = [world.service(), world.service(), world.name(), 3_000];
    await watcher.inspect(name); // connects
    for (let second = 0; second < 3; second++) {
      // A second of the clock begins soon after the lease.
      await sleep(1_900 - (Date.now() % 1_000));
      const began = performance.now();
      const lease = await holder.acquire(name, { leaseTime });
      await sleep(200);
      const { owners } = await watcher.inspect(name);
      const elapsed = performance.now() - began;
      expect(owners[0]?.remainingTime ?? 0).toBeGreaterThanOrEqual(leaseTime - elapsed - 1);
      await lease.release();
    }
  });

  it('lists in pages, by a pattern, and with the prefix verbatim', async () => {
    const locks = world.service({ connections: 20 }, { keyPrefix: 'a[b]*c?\\:' });
    const others = world.service({}, { keyPrefix: 'ab-c-x:' });
    const names = ['odd*', 'odd[1]', 'order:1', 'order:10', 'order:2', 'stock:1', 'überß'];
    for (const name of names) await locks.acquire(name);
    await others.acquire('order:1');
    expect(namesOf(await listAll(locks))).toEqual(names);
    expect((await locks.list({ count: 2 })).cursor).toEqual(expect.any(String));
    expect(namesOf(await listAll(locks, { count: 2 }))).toEqual(names);
    expect(namesOf(await listAll(locks, { match: 'order:?' }))).toEqual(['order:1', 'order:2']);
    expect(namesOf(await listAll(locks, { match: 'odd\\[1\\]' }))).toEqual(['odd[1]']);
    expect(namesOf(await listAll(others))).toEqual(['order:1']);
    for (const cursor of ['', '0', 'after:', 'after:ab-c-x:'])
      await expect(locks.list({ cursor })).rejects.toThrow(LockConfigurationError);
  });

  it('shows clients: what they hold and wait for, also to those who wait', async () => {
    const ann = world.service({}, { applicationName: 'shop' });
    const bob = world.service({}, { applicationName: 'waiter' });
    const viewer = world.service();
    const name = world.name();
    const lease = await ann.acquire(name, { group: 'payments' });
    const waiting = bob.acquire(name);
    const clientOf = async (application: string) =>
      (await viewer.clients()).find((client) => client.application === application);
    await until(async () => (await clientOf('shop'))?.held === 1 && (await clientOf('waiter'))?.waiting === 1);
    expect(await clientOf('shop')).toMatchObject({
      pid: process.pid,
      holds: [{ name, type: 'reentrant', owner: lease.owner, group: 'payments' }],
    });
    const seen = await viewer.inspect(name);
    expect(seen).toMatchObject({
      locked: true,
      waiting: 1,
      owners: [{ client: { application: 'shop', group: 'payments' } }],
    });
    const busy = await viewer.acquire(name, { waitTime: 4_000 }).catch((error) => error);
    expect(busy.message).toContain(`held by ${lease.owner} of 'shop'`);
    await lease.release();
    await (await waiting).release();
    await ann.close();
    expect(await clientOf('shop')).toBeUndefined();
  });

  it('forgets a client that was killed, when its record is out of date', async () => {
    const viewer = world.service();
    const name = world.name();
    const { child } = await startProcess('sql-lock-holder.ts', world.locks, world.server.url, name, '30000');
    await until(async () => (await viewer.clients()).some(({ pid }) => pid === child.pid));
    child.kill('SIGKILL');
    const outdate = `UPDATE ${world.table}_client SET expires = 0`;
    await query(world.server, outdate, outdate);
    expect(await viewer.clients()).toEqual([]);
    // The next client whose record is written removes it.
    const lease = await viewer.acquire(name);
    const count = `SELECT count(*) AS n FROM ${world.table}_client`;
    await until(async () => {
      const [{ n }] = await query(world.server, count, count);
      return (await viewer.clients()).length === 1 && Number(n) === 1;
    });
    await lease.release();
  });

  it('is healthy while the database answers, and says why it is not', async () => {
    const locks = world.service();
    expect(await locks.health()).toMatchObject({ healthy: true, problems: [], responseTime: expect.any(Number) });
    const lost = world.service({ url: world.server.urlAt(9) });
    expect(await lost.health()).toMatchObject({ healthy: false, problems: [expect.stringMatching(/ECONNREFUSED/)] });
  });

  it('is not healthy with a user that may not lock', async () => {
    await world.service().connect();
    const url = new URL(world.server.url);
    url.username = await addUser(world, 'UPDATE');
    url.password = PASSWORD;
    const { healthy, problems } = await world.service({ url: url.href, createTable: false }).health();
    expect(healthy).toBe(false);
    expect(problems.join()).toMatch(/denied/i);
  });

  it('is on the dashboard, which releases by force', async () => {
    const backend = world.backend();
    const app: DashboardApp = await openDashboard({
      locks: { backend, applicationName: 'board' },
      dashboard: { readOnly: false },
    });
    const holder = createLockService({
      backend: world.backend(),
      logger: world.logger,
      applicationName: 'shop',
      shutdownTimeout: 100,
    });
    try {
      const name = world.name();
      const lease = await holder.acquire(name);
      await until(async () => {
        const { summary, locks } = await app.board();
        const [row] = locks.rows;
        return summary.held === 1 && row.name === name && row.owners[0].application === 'shop';
      });
      expect(await app.release(name, { reason: 'stuck since noon' })).toMatchObject({ status: 200 });
      await until(() => lease.signal.aborted);
      expect(await app.locks.isLocked(name)).toBe(false);
    } finally {
      await holder.close();
      await app.close();
    }
  });
});
