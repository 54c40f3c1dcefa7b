import { setTimeout as sleep } from 'node:timers/promises';
import { startTcpProxy } from '../support/network/tcp-proxy.js';
import { until } from '../support/until.js';
import { countSessions, query } from './sessions.js';
import { ALL_SQL_LOCKS } from './sql-locks.js';
import { openSqlWorld } from './sql-world.js';

/** The connections of a waiter carry nothing any more, and neither side is notified. */
describe.each(ALL_SQL_LOCKS)('a waiter whose connection is cut silently, %s on %s', (which, kind) => {
  const world = openSqlWorld(kind, which);

  /** A waiter behind its own proxy, which cuts the present connections; new ones work. */
  const cutWaiter = async (name: string, watchdogTimeout: number) => {
    const proxy = await startTcpProxy(world.server.port);
    const waiter = world.service({ url: world.server.urlAt(proxy.port) }, { watchdogTimeout });
    const waiting = waiter.acquire(name);
    await until(async () => (await countSessions(world.server)).waiting === 1);
    proxy.cutHalfOpen();
    await proxy.heal();
    return { waiting, proxy };
  };

  it('gets the lock when it is free, although its session was granted it before', async () => {
    const [holder, name] = [world.service(), world.name()];
    const lease = await holder.acquire(name);
    const { waiting, proxy } = await cutWaiter(name, 3_000);
    await lease.release();
    const got = await Promise.race([waiting, sleep(25_000, undefined, { ref: false })]);
    expect(got?.held).toBe(true);
    await got?.release();
    await proxy.stop();
  }, 60_000);

  it('does not keep others out for a lease', async () => {
    const [holder, other, name] = [world.service(), world.service(), world.name()];
    const lease = await holder.acquire(name);
    // After a third of it, the control connection, which is cut as well, has 5 s to answer.
    const { waiting, proxy } = await cutWaiter(name, 18_000);
    const released = performance.now();
    await lease.release();
    const next = await other.acquire(name, { waitTime: 60_000 });
    expect(performance.now() - released).toBeLessThan(17_000);
    await next.release();
    await (await waiting).release();
    await proxy.stop();
  }, 90_000);

  it('goes on to wait with the same session while the server says that it does', async () => {
    const [holder, waiter, name] = [world.service(), world.service({}, { watchdogTimeout: 1_500 }), world.name()];
    const lease = await holder.acquire(name);
    const waiting = waiter.acquire(name);
    const waits = () =>
      query(
        world.server,
        "SELECT pid AS id FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
        "SELECT ID AS id FROM information_schema.PROCESSLIST WHERE COMMAND <> 'Sleep' AND (INFO LIKE '%FOR UPDATE' OR INFO LIKE 'SELECT GET_LOCK%')",
      );
    let before: unknown[] = [];
    await until(async () => {
      before = await waits();
      return before.length === 1;
    });
    await sleep(6_000);
    expect(await waits()).toEqual(before);
    await lease.release();
    await (await waiting).release();
    expect(world.logger.warnings).toEqual([]);
  });
});
