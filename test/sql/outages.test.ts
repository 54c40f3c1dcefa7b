import { LockUnavailableError } from '../../lib/engine/errors.js';
import { startTcpProxy } from '../support/network/tcp-proxy.js';
import { until } from '../support/until.js';
import { startAgain } from './sessions.js';
import { ALL_SQL_LOCKS } from './sql-locks.js';
import { openSqlWorld } from './sql-world.js';

describe.each(ALL_SQL_LOCKS)('while the database is away, %s on %s', (which, kind) => {
  const world = openSqlWorld(kind, which);

  it('refuses callers without waitTime after outageTimeout, and serves them when it is back', async () => {
    const locks = world.service({}, { outageTimeout: 2_000 });
    await (await locks.acquire(world.name())).release();
    await world.server.kill();
    await expect(locks.acquire(world.name())).rejects.toThrow(LockUnavailableError);
    await startAgain(world.server);
    await (await locks.acquire(world.name(), { waitTime: 30_000 })).release();
  }, 60_000);

  it('does not keep the process alive after close() when the database is silent', async () => {
    const proxy = await startTcpProxy(world.server.port);
    const locks = world.service({ url: world.server.urlAt(proxy.port) });
    const keepAlive = () => process.getActiveResourcesInfo().filter((resource) => resource === 'TCPSocketWrap').length;
    await (await locks.acquire(world.name())).release();
    // With, for each of the two connections, one socket of this service and two of the proxy.
    const open = keepAlive();
    expect(open).toBeGreaterThanOrEqual(6);
    proxy.cutHalfOpen();
    await locks.close();
    await until(() => keepAlive() <= open - 2);
    await proxy.stop();
  });
});
