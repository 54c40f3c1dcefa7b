import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { startTcpProxy } from '../support/network/tcp-proxy.js';
import { startProcess } from '../support/processes/start-process.js';
import { ALL_SQL_LOCKS } from './sql-locks.js';
import { openSqlWorld } from './sql-world.js';

describe.each(ALL_SQL_LOCKS)('a process that has closed its service, %s on %s', (which, kind) => {
  const world = openSqlWorld(kind, which);

  it('ends although the server does not answer', async () => {
    const proxy = await startTcpProxy(world.server.port);
    const { child } = await startProcess('sql-lock-closer.ts', world.locks, world.server.urlAt(proxy.port));
    proxy.cutHalfOpen();
    const ended = await Promise.race([once(child, 'exit'), sleep(30_000, undefined, { ref: false })]);
    child.kill('SIGKILL');
    expect(ended).toEqual([0, null]);
    await proxy.stop();
  }, 60_000);
});
